#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/model.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// A model as the bytes of a file, without having been written.
struct Encoded {
    std::string bytes;
    // Constants that were left out: the bytes declare them as external data of the file `location`,
    // at offset 2^50 (beyond its end: nobody reads them by mistake), and whoever reads the bytes
    // must be given these by name. In the main graph only. With `offset_is_address` the offset is
    // the address of a constant's bytes, which are there as long as the constant.
    std::vector<std::pair<std::string, Constant>> left_out;
    std::string location = "*trocar*";
};

struct EncodeOptions {
    // Dense constants of the main graph with at least this many bytes are left out. 0: none.
    std::size_t leave_out_from = 0;
    // The name of the file that is declared to hold what was left out.
    std::string location = "*trocar*";
    bool offset_is_address = false;  // of what was left out
};

// Must a file have reached the disk when it is written, or is it enough that it outlives the
// process?
enum class Sync { no, yes };

// A file that values are added to one after the other.
class ValueArchive {
public:
    virtual ~ValueArchive() = default;
    // No room for one more value of this name: the next ones belong into another archive.
    virtual bool full(std::string_view) const { return false; }
    // Names must differ. Returns where in the file the elements begin, little-endian and without
    // padding; they are written when this returns. Throws Error(unsupported) on a value that the
    // format does not hold; Error(input) when the disk is full, and the archive is as before.
    virtual std::uint64_t add(const NamedValue& value) = 0;
    // Ends the file; only then are other programs sure to read it.
    virtual void close() = 0;
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
    void (*write_value)(const NamedValue& value, const std::filesystem::path& path,
                        Sync sync) = nullptr;
    // Can `write_value` hold this value without loss?
    bool (*holds)(const Value& value) = nullptr;
    // Several values in one file, where the format has that: a new file, in the place of an old
    // one, with the suffix `archive_suffix`. Holds what `holds`.
    std::unique_ptr<ValueArchive> (*create_archive)(const std::filesystem::path& path) = nullptr;
    const char* archive_suffix = "";
    // Several values that are all there, in one file with that suffix; nullptr: by its archive.
    void (*write_values)(std::span<const NamedValue> values, const std::filesystem::path& path,
                         Sync sync) = nullptr;

    // Models may be folders: `matches` and `read` take those too, `matches` with an empty head.
    bool reads_folders = false;
};

// All formats of this build, by name.
std::span<const Format* const> formats();
const Format* find_format(std::string_view name);  // nullptr: none of that name
// The first one that writes models to files with such a suffix; nullptr: none does.
const Format* find_writer(const std::filesystem::path& path);

// Values from a file, by its suffix (.npy, .npz, .pb). Throws Error(input) or Error(unsupported).
std::vector<NamedValue> load_values(const std::filesystem::path& path);
// Writes FOLDER/STEM with the suffix of the first format that holds the value: .npy, else .pb.
// Returns the path written.
std::filesystem::path save_value(const NamedValue& value, const std::filesystem::path& folder,
                                 std::string_view stem, Sync sync = Sync::yes);
// The format whose files of several values have the suffix of `path` (.npz, .safetensors);
// nullptr: none.
const Format* find_archive(const std::filesystem::path& path);
// Writes all values to one such file, which appears under its name only when it is complete.
// Throws Error(usage) on other suffixes, Error(unsupported) on values that the format does not
// hold.
void save_values(std::span<const NamedValue> values, const std::filesystem::path& path);

}  // namespace trocar
#pragma GCC visibility pop
