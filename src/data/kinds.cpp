#include "data/kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/folder.h"
#include "data/idx.h"
#include "data/picture.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::data {

namespace {

namespace fs = std::filesystem;

bool names_picture(const std::string& name) {
    return has_suffix(name, ".png") || has_suffix(name, ".jpg") || has_suffix(name, ".jpeg");
}
bool is_idx_name(const std::string& name) {
    return name.find("images") != std::string::npos && name.find("idx") != std::string::npos;
}
bool is_cifar10_name(const std::string& name) {
    return has_suffix(name, ".bin") &&
           (name.starts_with("data_batch") || name.starts_with("test_batch"));
}
bool is_cifar100_name(const std::string& name) {
    return name == "train.bin" || name == "test.bin";
}

std::string kind_of_folder(const fs::path& path) {
    const auto all = listing(path);
    const auto any = [&](auto what) { return std::ranges::any_of(all.files, what); };
    if (any([](const std::string& name) { return has_suffix(name, ".aedat"); })) {
        return "events";
    }
    if (is_there(path / "labels.csv") || any(names_picture)) {
        return "images";
    }
    if (any([](const std::string& name) { return has_suffix(name, ".npy"); })) {
        return "arrays";
    }
    if (any(is_idx_name)) {
        return "idx";
    }
    if (any(is_cifar10_name)) {
        return "cifar10";
    }
    if (any(is_cifar100_name)) {
        return "cifar100";
    }
    return all.folders.empty() ? "" : "images";
}

std::string kind_of_file(const fs::path& path) {
    const auto file = MappedFile::open(path);
    const auto bytes = file->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto name = path.filename().string();
    if (is_png(bytes) || is_jpeg(bytes)) {
        return "images";
    }
    if (text.starts_with("\x93NUMPY") || text.starts_with("PK")) {
        return "arrays";
    }
    if (text.starts_with("#!AER-DAT")) {
        return "events";
    }
    if (is_idx(bytes) || is_gzip(bytes)) {
        return "idx";
    }
    return is_cifar10_name(name) ? "cifar10" : is_cifar100_name(name) ? "cifar100" : "";
}

}  // namespace

std::string kind_of(const fs::path& path) {
    if (!is_there(path)) {
        throw Error(Fault::input, fmt::format("{} does not exist", quoted(path)));
    }
    const auto kind = is_folder(path) ? kind_of_folder(path) : kind_of_file(path);
    if (kind.empty()) {
        throw Error(Fault::input, fmt::format("what data {} holds cannot be told", quoted(path)),
                    "known are pictures, .npz and .npy, idx files, CIFAR's .bin and .aedat; force "
                    "one with --data-kind");
    }
    return kind;
}

}  // namespace trocar::data
