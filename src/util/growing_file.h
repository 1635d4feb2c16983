#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "trocar/tensor.h"

namespace trocar {

// A file that is there under its name from the start and grows by whole pieces: a piece that cannot
// be written to its end (the disk is full) is taken back, so that what was written before stays
// readable. What was written survives the end of this process, not that of the machine. Throws
// Error(input).
class GrowingFile {
public:
    explicit GrowingFile(std::filesystem::path path);  // empty at first
    GrowingFile(const GrowingFile&) = delete;
    GrowingFile& operator=(const GrowingFile&) = delete;
    ~GrowingFile();

    // One piece.
    void write(std::initializer_list<Bytes> parts);
    void write(std::string_view text);
    // Over what is there already.
    void overwrite(std::uint64_t at, std::string_view text);
    std::uint64_t size() const { return size_; }
    const std::filesystem::path& path() const { return path_; }

private:
    void write_at(std::uint64_t at, Bytes bytes);
    std::filesystem::path path_;
    int fd_ = -1;
    std::uint64_t size_ = 0;
};

}  // namespace trocar
