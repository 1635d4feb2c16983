#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trocar/format.h"
#include "trocar/tensor.h"

namespace trocar {

// A file that appears under its name only when `commit` is called: until then it is written under a
// temporary name in the same folder, which is removed when the writer goes. Throws Error(input)
// when the folder cannot be written, the disk is full…
class FileWriter {
public:
    explicit FileWriter(std::filesystem::path path);
    FileWriter(const FileWriter&) = delete;
    FileWriter& operator=(const FileWriter&) = delete;
    ~FileWriter();

    void write(Bytes bytes);
    void write(std::string_view text);
    std::uint64_t written() const { return written_; }
    void commit(Sync sync = Sync::yes);

private:
    void flush();
    void write_through(const char* at, std::size_t left);
    [[noreturn]] void fail(const char* doing);
    std::filesystem::path path_;
    std::string temporary_;
    int fd_ = -1;
    std::string buffer_;
    std::uint64_t written_ = 0;
};

void write_file(const std::filesystem::path& path, std::string_view text);
std::string read_file(const std::filesystem::path& path);  // throws Error(input)

}  // namespace trocar
