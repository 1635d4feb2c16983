#include "util/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar {

namespace {
constexpr std::size_t buffer_limit = std::size_t{1} << 18;
}

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(path_, ignored)) {
        // Through the link: the file it points to is replaced, the link stays.
        auto target = std::filesystem::weakly_canonical(path_, ignored);
        if (!ignored) {
            path_ = std::move(target);
        }
    }
    temporary_ = path_.string() + ".XXXXXX";
    fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ < 0) {
        temporary_.clear();
        fail("create");
    }
}

FileWriter::~FileWriter() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
    if (!temporary_.empty()) {
        ::unlink(temporary_.c_str());
    }
}

void FileWriter::fail(const char* doing) {
    throw Error(Fault::input,
                fmt::format("cannot {} '{}': {}", doing, path_.string(), std::strerror(errno)));
}

void FileWriter::write(Bytes bytes) {
    written_ += bytes.size();
    if (bytes.size() + buffer_.size() > buffer_limit) {
        flush();
    }
    if (bytes.size() > buffer_limit) {
        write_through(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } else {
        buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
}

void FileWriter::write(std::string_view text) {
    write(std::as_bytes(std::span(text.data(), text.size())));
}

void FileWriter::flush() {
    write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
}

void FileWriter::write_through(const char* at, std::size_t left) {
    while (left > 0) {
        const auto count = ::write(fd_, at, std::min(left, std::size_t{1} << 30));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            fail("write");
        }
        at += count;
        left -= static_cast<std::size_t>(count);
    }
}

void FileWriter::commit(Sync sync) {
    flush();
    const auto mask = ::umask(0);
    ::umask(mask);
    struct stat existing {};
    const auto mode =
        ::stat(path_.c_str(), &existing) == 0 ? existing.st_mode & 07777 : 0666 & ~mask;
    if (::fchmod(fd_, mode) != 0 || (sync == Sync::yes && ::fsync(fd_) != 0)) {
        fail("write");
    }
    ::close(fd_);
    fd_ = -1;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
        fail("write");
    }
    temporary_.clear();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
    FileWriter writer(path);
    writer.write(text);
    writer.commit();
}

std::string read_file(const std::filesystem::path& path) {
    const auto file = MappedFile::open(path);
    return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

}  // namespace trocar
