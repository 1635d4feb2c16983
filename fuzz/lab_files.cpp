// Reads arbitrary bytes as what labs and comparisons are kept in: the manifests of a lab and of its
// layers, results of a run, saved comparisons, and the manifest of parts. What can be read can be
// used, and written as text that reads back as the same.
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "fuzz/require.h"
#include "lab/files.h"
#include "trocar/compare_report.h"
#include "trocar/partition.h"
#include "util/files.h"
#include "util/scratch.h"

namespace {

using namespace trocar;

// What is refused, is as bad input.
template <class Work>
bool accepts(const Work& work) {
    try {
        work();
        return true;
    } catch (const Error& error) {
        require(error.fault() == Fault::input);
        return false;
    }
}

// A folder with elements that a manifest may name.
const std::filesystem::path& folder() {
    static const ScratchFolder scratch{std::filesystem::temp_directory_path()};
    static const bool made = [] {
        write_file(scratch.path() / "x.bin", std::string(8, '\0'));
        return true;
    }();
    require(made);
    return scratch.path();
}

void read_comparison(std::string_view text) {
    Comparison comparison;
    if (!accepts([&] { comparison = comparison_from_json(text); })) {
        return;
    }
    judge(comparison, {});
    comparison_report(comparison, {.worst_first = true, .most = 3, .only_bad = false});
    comparison_report(comparison, {.worst_first = false, .most = 0, .only_bad = true});
    comparison_plot(comparison);
    const auto once = to_json(comparison);
    auto again = comparison_from_json(once);
    judge(again, {});
    require(to_json(again) == once);
}

void read_lab_manifest(std::string_view text) {
    Lab lab;
    if (!accepts([&] { lab = lab::lab_from_json(text, folder() / lab::manifest_file); })) {
        return;
    }
    accepts([&] {
        auto comparison = compare_lab(lab, {"results"}, {}, {});
        comparison_report(comparison, {});
        require(comparison.results.size() >= lab.layers.size());
    });
    const auto once = lab::lab_json(lab, {});
    require(lab::lab_json(lab::lab_from_json(once, folder() / lab::manifest_file), {}) == once);
}

void read_layer_manifest(std::string_view text) {
    LabLayer layer;
    if (!accepts([&] { lab::layer_from_json(text, folder() / lab::manifest_file, layer); })) {
        return;
    }
    for (const auto& sample : layer.samples) {
        for (const auto* values : {&sample.inputs, &sample.outputs}) {
            for (const auto& value : *values) {
                accepts([&] { lab::load_value(folder(), value); });
            }
        }
    }
    const Lab lab;
    const auto once = lab::layer_json(lab, layer);
    LabLayer again;
    lab::layer_from_json(once, folder() / lab::manifest_file, again);
    require(lab::layer_json(lab, again) == once);
}

void read_result(std::string_view text) {
    accepts([&] {
        const auto once = lab::result_json(lab::result_from_json(text, lab::result_file));
        require(lab::result_json(lab::result_from_json(once, lab::result_file)) == once);
    });
}

void read_parts(std::string_view text) {
    PartitionManifest manifest;
    if (!accepts([&] { manifest = partition_from_json(text, partition_manifest_file); })) {
        return;
    }
    accepts([&] { check_parts(folder(), manifest); });
    const auto once = partition_json(manifest);
    require(partition_json(partition_from_json(once, partition_manifest_file)) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    read_comparison(text);
    read_lab_manifest(text);
    read_layer_manifest(text);
    read_result(text);
    read_parts(text);
    return 0;
}
