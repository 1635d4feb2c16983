// Writes the samples that open_data makes as .npy, for check.py to compare:
//   data_driver PATH FOLDER DTYPE RANK [PREPROCESSING]
// prints a line for each sample: label (or -), name.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "trocar/data.h"
#include "trocar/error.h"
#include "trocar/format.h"

namespace {

using namespace trocar;

void write_samples(const std::vector<std::string>& words) {
    DataOptions options;
    options.path = words.at(1);
    if (words.size() > 5) {
        options.preprocess = parse_preprocess(std::vector{words[5]});
    }
    Type type = Type::tensor(parse_dtype(words.at(3)).value());
    type.dims = std::vector<Dim>(std::stoul(words.at(4)));
    Graph graph;
    graph.add_input("x", type);
    const auto data = open_data(options, graph);
    for (std::size_t i = 0; i < data->size(); ++i) {
        const auto sample = data->sample(i);
        save_value({"", sample.inputs.front().value}, words.at(2), fmt::format("{}", i), Sync::no);
        const auto label = sample.label ? fmt::format("{}", *sample.label) : "-";
        fmt::print("{} {}\n", label, sample.name);
    }
}

}  // namespace

int main(int count, char** words) {
    try {
        write_samples({words, words + count});
    } catch (const Error& e) {
        fmt::print(stderr, "{}\n  hint: {}\n", e.what(), e.hint());
        return 3;
    } catch (const std::exception& e) {
        fmt::print(stderr, "{}\n", e.what());
        return 70;
    }
}
