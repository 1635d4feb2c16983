#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/model.h"
#include "trocar/value.h"

namespace trocar {

// A model as the bytes of a file, without having been written.
struct Encoded {
    std::string bytes;
    // Constants that were left out: the bytes declare them as external data of the file `location`,
    // at offset 2^50 (beyond its end: nobody reads them by mistake), and whoever reads the bytes
    // must be given these by name. In the main graph only.
    std::vector<std::pair<std::string, Constant>> left_out;
    std::string location = "*trocar*";
};

struct EncodeOptions {
    // Dense constants of the main graph with at least this many bytes are left out. 0: none.
    std::size_t leave_out_from = 0;
    // The name of the file that is declared to hold what was left out.
    std::string location = "*trocar*";
};

// One file format. A unit of src/formats/NAME/format.cpp defines `NAME_format`; members that are
// nullptr say what the format cannot do.
struct Format {
    const char* name;
    const char* summary;
    const char* suffixes;  // ".onnx .pb": first the usual one
    const char* dialect;   // of the models it holds; "" for files of tensors only

    // Could `path`, whose first bytes (up to 4096) are `head`, be a model of this format? Content
    // decides; the suffix only where the content cannot tell.
    bool (*matches)(Bytes head, const std::filesystem::path& path) = nullptr;
    Model (*read)(const std::filesystem::path& path) = nullptr;
    void (*write)(const Model& model, const std::filesystem::path& path,
                  const SaveOptions& options) = nullptr;
    Encoded (*encode)(const Model& model, const EncodeOptions& options) = nullptr;

    // Files of values: one tensor (its name empty when the file has none) or several.
    std::vector<NamedValue> (*read_values)(const std::filesystem::path& path) = nullptr;
    void (*write_value)(const NamedValue& value, const std::filesystem::path& path) = nullptr;
    // Can `write_value` hold this value without loss?
    bool (*holds)(const Value& value) = nullptr;
};

// All formats of this build, by name.
std::span<const Format* const> formats();
const Format* find_format(std::string_view name);  // nullptr: none of that name

// Values from a file, by its suffix (.npy, .npz, .pb). Throws Error(input) or Error(unsupported).
std::vector<NamedValue> load_values(const std::filesystem::path& path);
// Writes FOLDER/STEM with the suffix of the first format that holds the value: .npy, else .pb.
// Returns the path written.
std::filesystem::path save_value(const NamedValue& value, const std::filesystem::path& folder,
                                 std::string_view stem);

}  // namespace trocar
