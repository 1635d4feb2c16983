#pragma once

#include <filesystem>
#include <memory>

#include "trocar/tensor.h"

namespace trocar {

// A file mapped read-only. The bytes stay valid while the object lives, also when the file is
// replaced by renaming; a file that another process shortens meanwhile is not guarded against.
class MappedFile {
public:
    // Throws Error(input) when the file cannot be opened or is no ordinary file.
    static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    Bytes bytes() const { return bytes_; }
    const std::filesystem::path& path() const { return path_; }

private:
    MappedFile(std::filesystem::path path, Bytes bytes) : path_(std::move(path)), bytes_(bytes) {}
    std::filesystem::path path_;
    Bytes bytes_;
};

// Tells the system that mapped bytes are not needed soon: resident memory falls, the bytes stay
// readable. Only whole pages inside `bytes` are affected; bytes that are not of a living MappedFile
// are left alone.
void release_pages(Bytes bytes);

}  // namespace trocar
