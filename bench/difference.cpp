// Differences of two tensors against numpy, which computes the same in a process beside ours:
// bench_difference MODELS ENGINES [ROUNDS]. ENGINES is the folder that has Python.
#include "trocar/difference.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>

#include "bench/bench.h"

namespace trocar {
namespace {

// A Python that computes the same each time it is sent a line, and answers with the seconds taken.
class Numpy {
public:
    Numpy(const std::string& python, const std::vector<std::string>& words) {
        std::array<int, 2> to{};
        std::array<int, 2> from{};
        if (::pipe(to.data()) != 0 || ::pipe(from.data()) != 0) {
            throw std::runtime_error("no pipe");
        }
        child_ = ::fork();
        if (child_ == 0) {
            ::dup2(to[0], 0);
            ::dup2(from[1], 1);
            for (const int end : {to[0], to[1], from[0], from[1]}) {
                ::close(end);
            }
            std::vector<const char*> all = {python.c_str()};
            for (const auto& word : words) {
                all.push_back(word.c_str());
            }
            all.push_back(nullptr);
            ::execv(python.c_str(), const_cast<char**>(all.data()));
            ::_exit(127);
        }
        ::close(to[0]);
        ::close(from[1]);
        ask_ = ::fdopen(to[1], "w");
        answer_ = ::fdopen(from[0], "r");
    }
    Numpy(const Numpy&) = delete;
    Numpy& operator=(const Numpy&) = delete;
    ~Numpy() {
        std::fclose(ask_);
        std::fclose(answer_);
        ::waitpid(child_, nullptr, 0);
    }

    double seconds() {
        std::fputs("\n", ask_);
        std::fflush(ask_);
        std::array<char, 64> line{};
        if (std::fgets(line.data(), line.size(), answer_) == nullptr) {
            throw std::runtime_error("Python has stopped");
        }
        return std::stod(line.data());
    }

private:
    pid_t child_ = 0;
    std::FILE* ask_ = nullptr;
    std::FILE* answer_ = nullptr;
};

void save(const std::filesystem::path& path, const std::vector<float>& numbers) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(4 * numbers.size()));
}

void measure(const std::string& python, const Shape& shape, int rounds) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> left(element_count(shape));
    std::vector<float> right(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
        left[i] = normal(random);
        right[i] = left[i] * (1 + 1e-5F * normal(random)) + 1e-6F * normal(random);
    }
    const auto folder =
        std::filesystem::temp_directory_path() / fmt::format("trocar-bench-{}", ::getpid());
    std::filesystem::create_directories(folder);
    save(folder / "a", left);
    save(folder / "b", right);
    const auto a = Value::copy(DType::f32, shape, std::as_bytes(std::span(left)));
    const auto b = Value::copy(DType::f32, shape, std::as_bytes(std::span(right)));
    const DifferenceOptions options{.tolerance = {.rtol = 1e-5, .atol = 1e-6}};
    std::vector<double> own;
    std::vector<double> ratios;
    {
        std::vector<std::string> words = {"-B", TROCAR_SOURCE_DIR "/bench/difference.py",
                                          (folder / "a").string(), (folder / "b").string()};
        for (const auto length : shape) {
            words.push_back(std::to_string(length));
        }
        Numpy numpy(python, words);
        for (int round = -2; round < rounds; ++round) {
            const double theirs = numpy.seconds();
            const auto start = seconds();
            difference(a, b, options);
            const auto taken = seconds() - start;
            if (round >= 0) {
                own.push_back(taken);
                ratios.push_back(theirs / taken);
            }
        }
    }
    std::filesystem::remove_all(folder);
    const auto ratio = median(std::move(ratios));
    row(fmt::format("metrics over a tensor pair vs numpy, f32 {}", value_text(a).substr(4)),
        fmt::format("numpy, one thread; ours {:.2f} ms", median(std::move(own)) * 1e3),
        fmt::format("{:.1f}x", ratio), ">= 5x", ratio >= 5);
}

int bench(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: bench_difference MODELS ENGINES [ROUNDS]\n");
        return 2;
    }
    const int rounds = argc > 3 ? std::stoi(argv[3]) : 20;
    const auto python = fmt::format("{}/python/bin/python", argv[2]);
    fmt::print("Differences (medians of {} rounds, interleaved, one thread)\n", rounds);
    measure(python, {1000, 1000}, rounds);
    measure(python, {1, 64, 125, 125}, rounds);
    return 0;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    return trocar::run_bench("bench_difference", [&] { return trocar::bench(argc, argv); });
}
