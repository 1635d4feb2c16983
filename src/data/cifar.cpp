#include "data/cifar.h"

#include <fmt/format.h>

#include "data/folder.h"
#include "data/source.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar::data {

namespace fs = std::filesystem;

std::vector<CifarRecord> read_cifar(Bytes file, bool hundred, std::string_view where) {
    const std::size_t labels = hundred ? 2 : 1;
    const auto each = labels + cifar_pixels;
    if (file.empty() || file.size() % each != 0) {
        throw Error(Fault::input,
                    fmt::format("{} has {} bytes, which are no records of CIFAR-{} ({} bytes each)",
                                where, file.size(), hundred ? 100 : 10, each),
                    fmt::format("get the binary version anew, or say --data-kind {}",
                                hundred ? "cifar10" : "cifar100"));
    }
    std::vector<CifarRecord> records;
    records.reserve(file.size() / each);
    for (std::size_t at = 0; at < file.size(); at += each) {
        const auto label = std::to_integer<std::int64_t>(file[at + labels - 1]);
        if (label >= (hundred ? 100 : 10)) {
            throw Error(Fault::input,
                        fmt::format("{}, record {}: CIFAR-{} has no class {}", where, at / each,
                                    hundred ? 100 : 10, label),
                        "is it CIFAR's binary version?");
        }
        records.push_back({label, file.subspan(at + labels, cifar_pixels)});
    }
    return records;
}

namespace {

class Cifar final : public Source {
public:
    Cifar() { noun = "picture"; }

    void add(const fs::path& path, bool hundred) {
        const auto file = MappedFile::open(path);
        files_.push_back(file);
        const auto name = path.stem().string();
        std::size_t index = 0;
        for (const auto& record : read_cifar(file->bytes(), hundred, quoted(path))) {
            entries_.push_back({record, files_.size() - 1, index++});
        }
    }

    std::size_t size() const override { return entries_.size(); }
    RawSample read(std::size_t index) const override {
        return picture_of(entries_[index].record.planes, 32, 32, 3, true);
    }
    std::optional<std::int64_t> label(std::size_t index) const override {
        return entries_[index].record.label;
    }
    std::string name(std::size_t index) const override {
        const auto& entry = entries_[index];
        return fmt::format("{} {}", files_[entry.file]->path().stem().string(), entry.index);
    }
    void digest(std::size_t index, Sha256& hash) const override {
        hash.add(entries_[index].record.planes);
    }

private:
    struct Entry {
        CifarRecord record;
        std::size_t file;
        std::size_t index;
    };
    std::vector<std::shared_ptr<const MappedFile>> files_;
    std::vector<Entry> entries_;
};

// data_batch_1.bin… and test_batch.bin; train.bin and test.bin.
bool belongs(const std::string& name, bool hundred, bool train) {
    if (hundred) {
        return name == (train ? "train.bin" : "test.bin");
    }
    return train ? name.starts_with("data_batch_") && has_suffix(name, ".bin")
                 : name == "test_batch.bin";
}

// One name a line, as CIFAR brings them; none where the file is not there.
std::vector<std::string> class_names_in(const fs::path& folder, bool hundred) {
    const auto path = folder / (hundred ? "fine_label_names.txt" : "batches.meta.txt");
    std::vector<std::string> names;
    if (is_there(path)) {
        for (const auto& line : split(read_file(path), '\n')) {
            if (!trim(line).empty()) {
                names.emplace_back(trim(line));
            }
        }
    }
    return names;
}

}  // namespace

std::unique_ptr<Source> open_cifar(const DataOptions& options, bool hundred) {
    const bool train = wants_train(options);
    if (!options.labels.empty()) {
        throw Error(Fault::usage, "CIFAR's files hold their labels themselves",
                    "leave --labels out");
    }
    auto source = std::make_unique<Cifar>();
    const bool folder = is_folder(options.path);
    if (!folder) {
        source->add(options.path, hundred);
    } else {
        for (const auto& name : listing(options.path).files) {
            if (belongs(name, hundred, train)) {
                source->add(options.path / name, hundred);
            }
        }
    }
    if (source->size() == 0) {
        throw Error(
            Fault::input,
            fmt::format("{} holds no {}", quoted(options.path),
                        hundred ? (train ? "train.bin" : "test.bin")
                                : (train ? "data_batch_1.bin" : "test_batch.bin")),
            fmt::format("get CIFAR's binary version, or say --split {}", train ? "test" : "train"));
    }
    source->class_names =
        class_names_in(folder ? options.path : options.path.parent_path(), hundred);
    return source;
}

}  // namespace trocar::data
