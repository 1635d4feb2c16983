#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "trocar/dump.h"
#include "util/file_stem.h"

namespace trocar::dump {

// Where a tensor was put.
struct Stored {
    std::string file;  // relative to the folder
    std::optional<std::uint64_t> offset;
};

// The tensors of a dump: a file each, or archives of many.
class TensorStore {
public:
    TensorStore(std::filesystem::path folder, DumpOptions::Tensors as);
    ~TensorStore();
    TensorStore(const TensorStore&) = delete;
    TensorStore& operator=(const TensorStore&) = delete;

    void start_set(std::uint64_t set);
    // The value is written when this returns. `name` need not be unique. Nothing stored: no format
    // of this build holds the value.
    std::optional<Stored> add(const std::string& name, const Value& value);
    // Makes the archives readable to others.
    void close();

private:
    std::optional<Stored> add_file(const std::string& name, const Value& value);
    Stored add_to_archive(const std::string& name, const Value& value);
    std::string set_name() const;

    std::filesystem::path folder_;
    const Format* format_ = nullptr;  // nullptr: tensors are not kept
    bool archives_ = false;
    std::uint64_t set_ = 0;
    std::uint64_t part_ = 0;  // of the set's archives
    FileStems stems_;
    std::unordered_set<std::string> archived_;  // names in the archive
    std::string archive_file_;
    std::unique_ptr<ValueArchive> archive_;
};

}  // namespace trocar::dump
