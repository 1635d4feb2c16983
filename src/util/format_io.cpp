#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "trocar/error.h"
#include "trocar/format.h"
#include "util/scratch.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t head_size = 4096;
// A folder with more files than this is not searched for names to suggest.
constexpr std::size_t most_entries = 10'000;

bool has_suffix(const Format& format, const fs::path& path) {
    const auto suffixes = split(format.suffixes, ' ');
    const auto name = lower(path.filename().string());
    return std::any_of(suffixes.begin(), suffixes.end(), [&](const std::string& suffix) {
        return !suffix.empty() && name.ends_with(suffix);
    });
}

template <class Wanted>
std::vector<std::string> names_of(Wanted&& wanted) {
    std::vector<std::string> names;
    for (const auto* format : formats()) {
        if (wanted(*format)) {
            names.emplace_back(format->name);
        }
    }
    return names;
}

bool reads_models(const Format& format) {
    return format.read != nullptr;
}

// "onnx (.onnx .pb), …" of the formats that are wanted.
template <class Wanted>
std::string names_with_suffixes(Wanted&& wanted) {
    std::vector<std::string> names;
    for (const auto* format : formats()) {
        if (wanted(*format)) {
            names.push_back(fmt::format("{} ({})", format->name, format->suffixes));
        }
    }
    return fmt::format("{}", join(names, ", "));
}

std::vector<std::string> files_in(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code failure;
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, failure), end;
         !failure && entry != end && names.size() < most_entries; entry.increment(failure)) {
        std::error_code ignored;
        if (entry->is_regular_file(ignored)) {
            names.push_back(entry->path().filename().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string folder_hint(const fs::path& folder) {
    std::vector<std::string> found;
    for (const auto& name : files_in(folder)) {
        for (const auto* format : formats()) {
            if (format->read != nullptr && has_suffix(*format, name) && found.size() < 3) {
                found.push_back(fmt::format("'{}'", (folder / name).string()));
                break;
            }
        }
    }
    return found.empty() ? std::string() : fmt::format("the folder holds {}", join(found, ", "));
}

// Throws unless there is an ordinary file with something in it.
void require_file(const fs::path& path, bool of_model) {
    const auto text = path.string();
    std::error_code failure;
    const auto status = fs::status(path, failure);
    if (status.type() == fs::file_type::not_found) {
        std::error_code ignored;
        const auto folder = path.parent_path();
        if (!folder.empty() && !fs::is_directory(folder, ignored)) {
            throw Error(Fault::input, fmt::format("there is no folder '{}'", folder.string()));
        }
        const auto near = closest(path.filename().string(), files_in(folder));
        throw Error(Fault::input, fmt::format("there is no file '{}'", text),
                    near ? fmt::format("did you mean '{}'?", (folder / *near).string()) : "");
    }
    if (failure) {
        throw Error(Fault::input, fmt::format("cannot open '{}': {}", text, failure.message()));
    }
    if (status.type() == fs::file_type::directory) {
        throw Error(Fault::input, fmt::format("'{}' is a folder, not a file", text),
                    of_model ? folder_hint(path) : "");
    }
    if (status.type() == fs::file_type::regular && fs::file_size(path, failure) == 0 && !failure) {
        throw Error(Fault::input, fmt::format("'{}' is empty", text));
    }
    if (status.type() != fs::file_type::regular) {
        throw Error(Fault::input, fmt::format("'{}' is not an ordinary file", text));
    }
}

std::string read_head(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string head(head_size, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    if (!file.is_open() || file.bad()) {
        throw Error(Fault::input, fmt::format("cannot read '{}'", path.string()),
                    "are you allowed to read it?");
    }
    head.resize(static_cast<std::size_t>(file.gcount()));
    return head;
}

// Large files in Git repositories are often left as a note of where to fetch them.
void refuse_pointer(std::string_view head, const fs::path& path) {
    if (head.starts_with("version https://git-lfs")) {
        throw Error(
            Fault::input,
            fmt::format("'{}' is a Git LFS pointer, not the file it stands for", path.string()),
            "fetch the file with `git lfs pull`");
    }
}

[[noreturn]] void refuse_model(const fs::path& path) {
    for (const auto* format : formats()) {
        if (format->read == nullptr && format->read_values != nullptr &&
            has_suffix(*format, path)) {
            throw Error(Fault::unsupported,
                        fmt::format("'{}' is a file of tensors ({}), not a model", path.string(),
                                    format->name),
                        "`trocar convert MODEL OUT --weights FILE` puts tensors into a model");
        }
    }
    throw Error(Fault::unsupported,
                fmt::format("'{}' is not a model format this build can read", path.string()),
                fmt::format("known formats: {}; force one with --format",
                            join(names_of(reads_models), ", ")));
}

const Format& forced_format(std::string_view name) {
    const auto* format = find_format(name);
    const auto known = names_of(reads_models);
    if (format == nullptr) {
        auto hint = did_you_mean(name, known);
        hint += fmt::format("{}known formats: {}", hint.empty() ? "" : " ", join(known, ", "));
        throw Error(Fault::usage, fmt::format("no format named '{}'", name), hint);
    }
    if (format->read == nullptr) {
        throw Error(Fault::unsupported,
                    fmt::format("models in the format '{}' cannot be read", name),
                    fmt::format("known formats: {}", join(known, ", ")));
    }
    return *format;
}

// The suffix of files of one value: the first, but where a format has models too, its last.
std::string value_suffix(const Format& format) {
    const auto suffixes = split(format.suffixes, ' ');
    return format.read == nullptr ? suffixes.front() : suffixes.back();
}

}  // namespace

const Format* find_format(std::string_view name) {
    for (const auto* format : formats()) {
        if (name == format->name) {
            return format;
        }
    }
    return nullptr;
}

Model load(const fs::path& path, std::string_view format) {
    const auto* forced = format.empty() ? nullptr : &forced_format(format);
    std::error_code failure;
    if (fs::is_directory(path, failure)) {
        for (const auto* candidate : formats()) {
            if (candidate->reads_folders && (forced == nullptr || forced == candidate) &&
                candidate->matches({}, path)) {
                return candidate->read(path);
            }
        }
    }
    require_file(path, true);
    const auto head = read_head(path);
    refuse_pointer(head, path);
    if (forced != nullptr) {
        return forced->read(path);
    }
    const auto bytes = std::as_bytes(std::span(head.data(), head.size()));
    for (const auto* candidate : formats()) {
        if (candidate->read != nullptr && candidate->matches != nullptr &&
            candidate->matches(bytes, path)) {
            return candidate->read(path);
        }
    }
    refuse_model(path);
}

const Format* find_writer(const fs::path& path) {
    for (const auto* format : formats()) {
        if (format->write != nullptr && has_suffix(*format, path)) {
            return format;
        }
    }
    return nullptr;
}

void save(const Model& model, const fs::path& path, const SaveOptions& options) {
    const Format* target = nullptr;
    for (const auto* format : formats()) {
        if (format->write == nullptr || !has_suffix(*format, path)) {
            continue;
        }
        const bool own =
            model.format.empty() ? model.dialect == format->dialect : model.format == format->name;
        if (own) {
            format->write(model, path, options);
            return;
        }
        target = format;
    }
    if (target != nullptr) {
        const auto& own = model.format.empty() ? model.dialect : model.format;
        throw Error(Fault::unsupported,
                    fmt::format("'{}' would be a model of the format '{}', but the model is '{}'",
                                path.string(), target->name, own),
                    "`trocar convert` maps it");
    }
    const auto writable = [](const Format& format) { return format.write != nullptr; };
    throw Error(
        Fault::usage,
        fmt::format("the suffix of '{}' names no model format that can be written", path.string()),
        fmt::format("known: {}", names_with_suffixes(writable)));
}

std::vector<NamedValue> load_values(const fs::path& path) {
    require_file(path, false);
    for (const auto* format : formats()) {
        if (format->read_values != nullptr && has_suffix(*format, path)) {
            refuse_pointer(read_head(path), path);
            return format->read_values(path);
        }
    }
    const auto readable = [](const Format& format) { return format.read_values != nullptr; };
    throw Error(Fault::unsupported,
                fmt::format("the suffix of '{}' names no format of tensors that can be read",
                            path.string()),
                fmt::format("known: {}; raw elements need their type and shape: {}:f32:1x3",
                            names_with_suffixes(readable), path.string()));
}

fs::path save_value(const NamedValue& value, const fs::path& folder, std::string_view stem,
                    Sync sync) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure) {
        throw Error(Fault::input, fmt::format("cannot make the folder '{}': {}", folder.string(),
                                              failure.message()));
    }
    for (const auto* format : formats()) {
        if (format->write_value != nullptr && format->holds != nullptr &&
            format->holds(value.value)) {
            auto path = folder / fmt::format("{}{}", stem, value_suffix(*format));
            format->write_value(value, path, sync);
            return path;
        }
    }
    throw Error(Fault::unsupported, fmt::format("no format of this build holds '{}', {}",
                                                value.name, value_text(value.value)));
}

const Format* find_archive(const fs::path& path) {
    for (const auto* format : formats()) {
        if (format->create_archive != nullptr &&
            lower(path.extension().string()) == format->archive_suffix) {
            return format;
        }
    }
    return nullptr;
}

void save_values(std::span<const NamedValue> values, const fs::path& path) {
    const auto* format = find_archive(path);
    if (format == nullptr) {
        throw Error(Fault::usage,
                    fmt::format("tensors are not written to files such as '{}'", path.string()),
                    "name it .npz or .safetensors");
    }
    if (format->write_values != nullptr) {
        format->write_values(values, path, Sync::yes);
        return;
    }
    const ScratchFolder scratch(path.has_parent_path() ? path.parent_path() : fs::path("."));
    const auto made = scratch.path() / path.filename();
    const auto archive = format->create_archive(made);
    for (const auto& value : values) {
        archive->add(value);
    }
    archive->close();
    std::error_code failure;
    fs::rename(made, path, failure);
    if (failure) {
        throw Error(Fault::input,
                    fmt::format("cannot write '{}': {}", path.string(), failure.message()));
    }
}

}  // namespace trocar
