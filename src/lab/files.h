#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "trocar/error.h"
#include "trocar/lab.h"

namespace trocar::lab {

inline constexpr int schema = 1;
inline constexpr const char* manifest_file = "manifest.json";
inline constexpr const char* error_file = "error.txt";
// "model.onnx": the name of a file for a part of a model of this format.
std::string model_file(std::string_view format, std::string_view stem = "model");
// The name of the format that a model, or a part of it, is written in.
std::string format_of(const Model& model);
// The one that is in a folder.
std::filesystem::path model_in(const std::filesystem::path& folder);
inline constexpr const char* results_folder = "results";
inline constexpr const char* result_file = "result.json";

std::string lab_json(const Lab& lab, const SplitOptions& options);
std::string layer_json(const Lab& lab, const LabLayer& layer);
// What these files hold; `path` is how messages call them. Throw Error(input). A lab is given
// without what the manifests of its layers tell; a layer is filled with that.
Lab lab_from_json(std::string_view text, const std::filesystem::path& path);
void layer_from_json(std::string_view text, const std::filesystem::path& path, LabLayer& layer);
void read_layer(const std::filesystem::path& folder, LabLayer& layer);

// Elements without a head. Throws Error(input) when they are not as many as the type has.
Value load_elements(const std::filesystem::path& path, const Type& type);
// The value of the first file that is there, after its hash was looked at. Throws Error(input) when
// none is, or it was changed.
Value load_value(const std::filesystem::path& layer, const LabValue& value);

// What the file system refuses is an Error(input), with its words.
template <class Work>
auto on_files(const Work& work) {
    try {
        return work();
    } catch (const std::filesystem::filesystem_error& error) {
        throw Error(Fault::input,
                    fmt::format("'{}': {}", error.path1().string(), error.code().message()));
    }
}

// A file in a folder of a lab; throws Error(input) when the name leads out of it.
std::filesystem::path inside(const std::filesystem::path& folder, const std::string& name);

// Results of a layer under a name.
std::filesystem::path result_path(const Lab& lab, const LabLayer& layer, const std::string& name,
                                  bool cumulative);

struct StoredResult {
    RunEnd end = RunEnd::failed;
    std::string reason;
    std::string side;  // label
    std::string model_sha256;
    double seconds = 0;
    std::vector<std::vector<std::string>> outputs;  // files by sample, relative to the result
};
std::string result_json(const StoredResult& result);
StoredResult result_from_json(std::string_view text, const std::filesystem::path& path);
std::optional<StoredResult> read_result(const std::filesystem::path& folder);

}  // namespace trocar::lab
