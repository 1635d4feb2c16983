#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "data/folder.h"
#include "data/source.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar::data {

namespace {

namespace fs = std::filesystem;

bool is_picture_name(std::string_view name) {
    return has_suffix(name, ".png") || has_suffix(name, ".jpg") || has_suffix(name, ".jpeg");
}

struct ImageEntry {
    std::string name;  // below the folder
    std::optional<std::int64_t> label;
};

class Images final : public Source {
public:
    explicit Images(fs::path folder) : folder_(std::move(folder)) { noun = "picture"; }

    std::size_t size() const override { return entries.size(); }
    RawSample read(std::size_t index) const override {
        const auto path = folder_ / entries[index].name;
        return decode_picture(MappedFile::open(path)->bytes(), quoted(path));
    }
    std::optional<std::int64_t> label(std::size_t index) const override {
        return entries[index].label;
    }
    std::string name(std::size_t index) const override { return entries[index].name; }
    void digest(std::size_t index, Sha256& hash) const override {
        hash.add(MappedFile::open(folder_ / entries[index].name)->bytes());
    }

    std::vector<ImageEntry> entries;

private:
    fs::path folder_;
};

// A path in a file of labels stays in the folder.
void check_inside(const std::string& name, const std::string& where) {
    const fs::path path(name);
    if (name.empty() || path.is_absolute() || std::ranges::count(path, fs::path("..")) != 0) {
        throw Error(Fault::input,
                    fmt::format("{}: '{}' is not a file below the folder", where, name),
                    "name files relative to the folder of the pictures");
    }
}

bool is_heading(const std::vector<std::string>& row) {
    static const std::set<std::string> first{"file",  "filename", "file_name",
                                             "image", "path",     "name"};
    std::string word = row.front();
    std::ranges::transform(word, word.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return first.contains(word);
}

bool is_number(std::string_view text) {
    const auto digits = text.starts_with('-') ? text.substr(1) : text;
    return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

// The names of classes in the order of their labels, one a line; empty without such a file.
std::vector<std::string> class_list(const fs::path& folder) {
    std::vector<std::string> names;
    const auto path = folder / "classes.txt";
    if (is_there(path)) {
        for (const auto& line : split(read_file(path), '\n')) {
            if (const auto name = trim(line); !name.empty()) {
                names.emplace_back(name.ends_with('\r') ? trim(name.substr(0, name.size() - 1))
                                                        : name);
            }
        }
    }
    return names;
}

std::int64_t class_of(const std::string& name, const std::vector<std::string>& classes,
                      const std::string& where) {
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end()) {
        throw Error(
            Fault::input, fmt::format("{}: there is no class '{}'", where, name),
            fmt::format(
                "{}classes.txt lists them, one a line",
                did_you_mean(name, classes).empty() ? "" : did_you_mean(name, classes) + " "));
    }
    return found - classes.begin();
}

using Rows = std::vector<std::vector<std::string>>;

Rows label_rows(const fs::path& path) {
    auto rows = read_csv(path);
    if (!rows.empty() && is_heading(rows.front())) {
        rows.erase(rows.begin());
    }
    if (rows.empty()) {
        throw Error(Fault::input, fmt::format("{} names no pictures", quoted(path)),
                    "write a line FILE,LABEL for each");
    }
    for (const auto& row : rows) {
        if (row.size() < 2 || row[1].empty()) {
            throw Error(Fault::input,
                        fmt::format("{}: '{}' has no label", quoted(path), row.front()),
                        "write lines FILE,LABEL");
        }
    }
    return rows;
}

// Labels that are words become numbers: their places in classes.txt, else in the sorted words.
void add_labelled(Images& images, const fs::path& folder, const fs::path& path) {
    const auto rows = label_rows(path);
    const bool words =
        !std::ranges::all_of(rows, [](const auto& row) { return is_number(row[1]); });
    images.class_names = class_list(folder);
    if (words && images.class_names.empty()) {
        std::set<std::string> names;
        for (const auto& row : rows) {
            names.insert(row[1]);
        }
        images.class_names.assign(names.begin(), names.end());
    }
    std::unordered_set<std::string> seen;
    for (const auto& row : rows) {
        const auto where = fmt::format("{}, '{}'", quoted(path), row[0]);
        check_inside(row[0], where);
        if (!seen.insert(row[0]).second) {
            throw Error(Fault::input, fmt::format("{}: the file is named twice", where));
        }
        if (!is_there(folder / row[0])) {
            throw Error(Fault::input, fmt::format("{}: there is no such file", where),
                        fmt::format("names are relative to {}", quoted(folder)));
        }
        images.entries.push_back({row[0], words ? class_of(row[1], images.class_names, where)
                                                : parse_label(row[1], where)});
    }
    const auto all = listing(folder).files;
    const auto left_out = std::ranges::count_if(all, [&](const std::string& name) {
        return is_picture_name(name) && !seen.contains(name);
    });
    if (left_out > 0) {
        images.notes.push_back(fmt::format("{} without a label {} left out",
                                           counted(static_cast<std::size_t>(left_out), "picture"),
                                           left_out == 1 ? "is" : "are"));
    }
}

// A folder for each class, as torchvision's ImageFolder has it: sorted, or as classes.txt says.
void add_classes(Images& images, const fs::path& folder, const Listing& all) {
    images.class_names = class_list(folder);
    if (images.class_names.empty()) {
        images.class_names = all.folders;
    }
    for (const auto& name : all.folders) {
        const auto label = class_of(name, images.class_names, quoted(folder / name));
        for (const auto& file : listing(folder / name).files) {
            if (is_picture_name(file)) {
                images.entries.push_back({fmt::format("{}/{}", name, file), label});
            }
        }
    }
}

}  // namespace

std::unique_ptr<Source> open_images(const DataOptions& options) {
    const auto& path = options.path;
    if (!is_folder(path)) {
        auto images = std::make_unique<Images>(path.parent_path());
        images->entries.push_back({path.filename().string(), std::nullopt});
        return images;
    }
    auto images = std::make_unique<Images>(path);
    const auto labels = options.labels.empty() ? path / "labels.csv" : options.labels;
    if (!options.labels.empty() || is_there(labels)) {
        add_labelled(*images, path, labels);
        return images;
    }
    const auto all = listing(path);
    std::vector<ImageEntry> alone;
    for (const auto& file : all.files) {
        if (is_picture_name(file)) {
            alone.push_back({file, std::nullopt});
        }
    }
    add_classes(*images, path, all);
    if (!images->entries.empty() && !alone.empty()) {
        throw Error(Fault::input,
                    fmt::format("{} has pictures both in folders and beside them", quoted(path)),
                    "move them into the folders of their classes, or write labels.csv: FILE,LABEL");
    }
    if (images->entries.empty()) {
        images->class_names.clear();
        images->entries = std::move(alone);
    }
    if (images->entries.empty()) {
        throw Error(Fault::input, fmt::format("{} holds no .png or .jpg", quoted(path)),
                    "pictures stand in it or in a folder for each class");
    }
    return images;
}

}  // namespace trocar::data
