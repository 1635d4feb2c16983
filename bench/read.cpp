// Reads a model into a graph several times: bench_read MODEL [RUNS]. Prints one line of JSON with
// the seconds of each run and by how much the first one made the process grow.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "trocar/error.h"
#include "trocar/model.h"

namespace {

// Memory of this process that is in RAM and not shared with a file, and that which is.
struct Resident {
    long own_kb = 0;
    long file_kb = 0;
};

Resident resident() {
    Resident found;
    std::ifstream status("/proc/self/status");
    for (std::string key; status >> key;) {
        if (key == "RssAnon:") {
            status >> found.own_kb;
        } else if (key == "RssFile:") {
            status >> found.file_kb;
        }
    }
    return found;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: bench_read MODEL [RUNS]\n", stderr);
        return 2;
    }
    try {
        const int runs = argc > 2 ? std::stoi(argv[2]) : 5;
        const auto before = resident();
        Resident after;
        std::vector<double> seconds;
        std::size_t ops = 0;
        for (int run = 0; run < runs; ++run) {
            const auto start = std::chrono::steady_clock::now();
            const trocar::Model model = trocar::load(argv[1]);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            seconds.push_back(took.count());
            ops = model.graph.op_count();
            if (run == 0) {
                after = resident();
            }
        }
        fmt::print("{{\"ops\": {}, \"own_kb\": {}, \"file_kb\": {}, \"seconds\": [{}]}}\n", ops,
                   after.own_kb - before.own_kb, after.file_kb - before.file_kb,
                   fmt::join(seconds, ", "));
    } catch (const trocar::Error& error) {
        fmt::print(stderr, "bench_read: {}\n", error.what());
        return 1;
    }
    return 0;
}
