#include "tools/dump/tensor_store.h"

#include <fmt/format.h>

#include "trocar/error.h"

namespace trocar::dump {

namespace fs = std::filesystem;

TensorStore::TensorStore(fs::path folder, DumpOptions::Tensors as) : folder_(std::move(folder)) {
    if (as == DumpOptions::Tensors::none) {
        return;
    }
    const auto* name = as == DumpOptions::Tensors::safetensors ? "safetensors" : "numpy";
    format_ = find_format(name);
    if (format_ == nullptr) {
        throw Error(Fault::unsupported, fmt::format("this build has no format '{}'", name));
    }
    archives_ = as != DumpOptions::Tensors::npy;
}

TensorStore::~TensorStore() {
    try {
        close();
    } catch (const Error&) {
        // The index says where every tensor is; the archive alone is not readable then.
    }
}

std::string TensorStore::set_name() const {
    return set_ == 0 ? "tensors" : fmt::format("tensors.{}", set_);
}

void TensorStore::start_set(std::uint64_t set) {
    close();
    set_ = set;
    part_ = 0;
    stems_ = {};
}

void TensorStore::close() {
    if (archive_) {
        const auto archive = std::move(archive_);
        archive->close();
    }
}

std::optional<Stored> TensorStore::add(const std::string& name, const Value& value) {
    if (format_ == nullptr) {
        return std::nullopt;
    }
    return archives_ && format_->holds(value) ? add_to_archive(name, value) : add_file(name, value);
}

std::optional<Stored> TensorStore::add_file(const std::string& name, const Value& value) {
    const auto relative = fs::path(set_name());
    try {
        const auto path = save_value({name, value}, folder_ / relative, stems_.add(name), Sync::no);
        Stored stored{(relative / path.filename()).string(), std::nullopt};
        if (path.extension() == ".npy") {  // the elements stand at its end
            stored.offset = fs::file_size(path) - value.bytes().size();
        }
        return stored;
    } catch (const Error& e) {
        if (e.fault() != Fault::unsupported) {
            throw;
        }
        return std::nullopt;
    }
}

Stored TensorStore::add_to_archive(const std::string& name, const Value& value) {
    if (archive_ && archive_->full(name)) {
        close();
        ++part_;
    }
    if (!archive_) {
        archived_.clear();
        archive_file_ =
            fmt::format("{}{}{}", set_name(), part_ == 0 ? "" : fmt::format("-{}", part_ + 1),
                        format_->archive_suffix);
        archive_ = format_->create_archive(folder_ / archive_file_);
    }
    auto unique = name;
    for (int number = 2; !archived_.insert(unique).second; ++number) {
        unique = fmt::format("{}_{}", name, number);
    }
    return {archive_file_, archive_->add({unique, value})};
}

}  // namespace trocar::dump
