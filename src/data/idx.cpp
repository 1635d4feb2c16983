#include "data/idx.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/folder.h"
#include "data/source.h"
#include "trocar/error.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar::data {

namespace {

namespace fs = std::filesystem;

// Deflate makes at most 1032 bytes of one.
constexpr std::size_t most_expansion = 1032;
constexpr std::size_t most_header = 4 + 4 * 255;

struct IdxHeader {
    Shape shape;
    std::size_t bytes = 0;
    std::size_t elements = 0;
};

IdxHeader parse_header(Bytes file, std::string_view where) {
    if (!is_idx(file)) {
        throw Error(Fault::input, fmt::format("{} is no idx file", where),
                    "MNIST's files are called train-images-idx3-ubyte, train-labels-idx1-ubyte…");
    }
    const auto byte = [&](std::size_t at) { return std::to_integer<std::int64_t>(file[at]); };
    if (byte(2) != 8) {
        throw Error(
            Fault::unsupported,
            fmt::format("{} holds elements of type {:#x}, not unsigned bytes", where, byte(2)),
            "give the samples as .npz");
    }
    IdxHeader header;
    const auto rank = static_cast<std::size_t>(byte(3));
    header.bytes = 4 + 4 * rank;
    if (file.size() < header.bytes) {
        throw Error(Fault::input, fmt::format("{} ends within its header", where), "get it anew");
    }
    for (std::size_t i = 0; i < rank; ++i) {
        const auto at = 4 + 4 * i;
        header.shape.push_back(byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 |
                               byte(at + 3));
    }
    header.elements = element_count(header.shape);
    return header;
}

}  // namespace

bool is_idx(Bytes file) {
    return file.size() >= 4 && file[0] == std::byte{0} && file[1] == std::byte{0} &&
           file[2] >= std::byte{8} && file[2] <= std::byte{14} && file[3] != std::byte{0};
}

Idx read_idx(Bytes file, std::shared_ptr<const void> owner, std::string_view where) {
    if (is_gzip(file)) {
        const auto head = unpack_gzip(file, most_header, where);
        const auto declared = parse_header(head, where);
        if (declared.elements > most_expansion * file.size()) {
            throw Error(Fault::input, fmt::format("{} declares {} elements, which {} packed bytes "
                                                  "cannot hold",
                                                  where, declared.elements, file.size()));
        }
        // One more than there may be, to notice it.
        const auto bytes = std::make_shared<const std::vector<std::byte>>(
            unpack_gzip(file, declared.bytes + declared.elements + 1, where));
        if (is_gzip(*bytes)) {
            throw Error(Fault::input, fmt::format("{} is packed twice", where));
        }
        return read_idx(*bytes, bytes, where);
    }
    const auto header = parse_header(file, where);
    if (header.elements != file.size() - header.bytes) {
        throw Error(Fault::input,
                    fmt::format("{} declares {} elements, but {} follow", where, header.elements,
                                file.size() - header.bytes > header.elements
                                    ? "more"
                                    : fmt::format("{}", file.size() - header.bytes)),
                    "the file was probably cut short or changed: get it anew");
    }
    return {header.shape, file.subspan(header.bytes), std::move(owner)};
}

Idx read_idx(const fs::path& path) {
    const auto file = MappedFile::open(path);
    return read_idx(file->bytes(), file, quoted(path));
}

namespace {

class IdxImages final : public Source {
public:
    IdxImages() { noun = "picture"; }

    std::size_t size() const override { return static_cast<std::size_t>(images.shape[0]); }
    RawSample read(std::size_t index) const override {
        const auto& shape = images.shape;
        return picture_of(row(index), shape[1], shape[2], shape.size() == 4 ? shape[3] : 1);
    }
    std::optional<std::int64_t> label(std::size_t index) const override {
        if (labels.shape.empty()) {
            return std::nullopt;
        }
        return std::to_integer<std::int64_t>(labels.elements[index]);
    }
    std::string name(std::size_t index) const override {
        return fmt::format("{} {}", file_name, index);
    }
    void digest(std::size_t index, Sha256& hash) const override { hash.add(row(index)); }

    Idx images;
    Idx labels;  // no shape: there are none
    std::string file_name;

private:
    Bytes row(std::size_t index) const {
        const auto each = images.elements.size() / size();
        return images.elements.subspan(index * each, each);
    }
};

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    const auto at = text.find(what);
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

bool is_images_name(const std::string& name) {
    return name.find("images") != std::string::npos && name.find("idx") != std::string::npos;
}

// The file of labels that goes with one of images: packed or not.
fs::path labels_beside(const fs::path& images) {
    const auto name =
        replaced(replaced(images.filename().string(), "images", "labels"), "idx3", "idx1");
    if (name == images.filename().string()) {
        return {};
    }
    const auto plain = has_suffix(name, ".gz") ? name.substr(0, name.size() - 3) : name;
    for (const auto& candidate : {name, plain, plain + ".gz"}) {
        if (const auto path = images.parent_path() / candidate; is_there(path)) {
            return path;
        }
    }
    return {};
}

fs::path images_in(const fs::path& folder, bool train) {
    std::vector<std::string> names;
    for (const auto& name : listing(folder).files) {
        if (is_images_name(name)) {
            names.push_back(name);
        }
    }
    const auto found = std::ranges::find_if(names, [&](const std::string& name) {
        return name.find("train") != std::string::npos ? train : !train;
    });
    if (found == names.end()) {
        throw Error(
            Fault::input,
            fmt::format("{} holds no images to {} with", quoted(folder), train ? "train" : "test"),
            names.empty() ? "MNIST's files are called t10k-images-idx3-ubyte, "
                            "t10k-labels-idx1-ubyte…"
                          : fmt::format("say --split {}", train ? "test" : "train"));
    }
    return folder / *found;
}

}  // namespace

std::unique_ptr<Source> open_idx(const DataOptions& options) {
    const bool train = wants_train(options);
    const auto path = is_folder(options.path) ? images_in(options.path, train) : options.path;
    auto source = std::make_unique<IdxImages>();
    source->file_name = path.filename().string();
    source->images = read_idx(path);
    const auto& shape = source->images.shape;
    const bool pictures =
        (shape.size() == 3 && shape[1] * shape[2] > 0) ||
        (shape.size() == 4 && shape[1] * shape[2] > 0 && (shape[3] == 1 || shape[3] == 3));
    if (!pictures) {
        throw Error(
            Fault::input,
            fmt::format("{} holds {}, which are no pictures", quoted(path), shape_text(shape)),
            "give the file of the images; its labels are found beside it");
    }
    const auto labels = options.labels.empty() ? labels_beside(path) : options.labels;
    if (labels.empty()) {
        source->notes.emplace_back("no file of labels stands beside the images");
        return source;
    }
    source->labels = read_idx(labels);
    if (source->labels.shape != Shape{shape[0]}) {
        throw Error(
            Fault::input,
            fmt::format("{} holds {} labels for {}", quoted(labels),
                        shape_text(source->labels.shape), counted(source->size(), "picture")),
            "images and labels are of different sets: get both anew");
    }
    return source;
}

}  // namespace trocar::data
