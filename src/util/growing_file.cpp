#include "util/growing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trocar/error.h"

namespace trocar {

namespace {

[[noreturn]] void fail(const char* doing, const std::filesystem::path& path) {
    const int why = errno;
    throw Error(Fault::input,
                fmt::format("cannot {} '{}': {}", doing, path.string(), std::strerror(why)),
                why == ENOSPC || why == EDQUOT || why == EFBIG
                    ? "what was written before is whole and readable"
                    : "");
}

}  // namespace

GrowingFile::GrowingFile(std::filesystem::path path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) {
        fail("create", path_);
    }
}

GrowingFile::~GrowingFile() {
    ::close(fd_);
}

void GrowingFile::write_at(std::uint64_t at, Bytes bytes) {
    while (!bytes.empty()) {
        const auto some = std::min(bytes.size(), std::size_t{1} << 30);
        const auto count = ::pwrite(fd_, bytes.data(), some, static_cast<off_t>(at));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            const int why = errno;
            if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) {
                // The first failure is the one to tell; readers leave out an unfinished end.
            }
            errno = why;
            fail("write", path_);
        }
        at += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

void GrowingFile::write(std::initializer_list<Bytes> parts) {
    auto at = size_;
    for (const auto& part : parts) {
        write_at(at, part);
        at += part.size();
    }
    size_ = at;
}

void GrowingFile::write(std::string_view text) {
    write({std::as_bytes(std::span(text.data(), text.size()))});
}

void GrowingFile::overwrite(std::uint64_t at, std::string_view text) {
    if (at + text.size() > size_) {
        throw Error(Fault::internal, fmt::format("'{}' ends before byte {}", path_.string(), at));
    }
    write_at(at, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace trocar
