#include "formats/onnx/external.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"

namespace trocar::onnx {

namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& file, const fs::path& folder) {
    const auto [end, _] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
    // The path of a folder may end in a separator, which is an empty last component.
    return end == folder.end() || (end->empty() && std::next(end) == folder.end());
}

}  // namespace

const std::shared_ptr<const MappedFile>& ExternalFiles::open(std::string_view location,
                                                             std::string_view tensor) {
    if (const auto known = files_.find(location); known != files_.end()) {
        return known->second;
    }
    const auto refuse = [&](std::string_view why, std::string_view hint) {
        throw Error(Fault::input,
                    fmt::format("'{}': the data of tensor '{}' lies in the file '{}', {}", model_,
                                tensor, location, why),
                    std::string(hint));
    };
    constexpr auto inside_hint =
        "external data must be named by a path inside the model's folder; put the file there";
    if (location.empty() || location.find('\0') != location.npos) {
        refuse("which is no name of a file", "");
    }
    const fs::path relative(location);
    if (relative.is_absolute()) {
        refuse("an absolute path", inside_hint);
    }
    if (std::find(relative.begin(), relative.end(), "..") != relative.end()) {
        refuse("a path that leads out of the model's folder", inside_hint);
    }
    if (folder_.empty()) {
        refuse("but the model itself is not in a folder", "");
    }
    std::error_code error;
    const auto folder = fs::canonical(folder_, error);
    const auto path = folder / relative;
    const auto file = error ? fs::path() : fs::canonical(path, error);
    if (error) {
        refuse(fmt::format("which cannot be opened: {}", error.message()),
               fmt::format("the model needs it at '{}'", (folder_ / relative).string()));
    }
    if (!is_inside(file, folder)) {
        refuse(fmt::format("a link to '{}' outside of the model's folder", file.string()),
               inside_hint);
    }
    std::shared_ptr<const MappedFile> mapped;
    try {
        mapped = MappedFile::open(file);
    } catch (const Error& e) {
        refuse(fmt::format("which cannot be read: {}", e.what()), "");
    }
    return files_.emplace(location, std::move(mapped)).first->second;
}

std::uint64_t ExternalFiles::total_bytes() const {
    std::uint64_t total = 0;
    for (const auto& [location, file] : files_) {
        total += file->bytes().size();
    }
    return total;
}

}  // namespace trocar::onnx
