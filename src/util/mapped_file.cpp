#include "util/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trocar/error.h"

namespace trocar {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        throw Error(Fault::input,
                    fmt::format("cannot open '{}': {}", path.string(), std::strerror(errno)));
    }
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        ::close(fd);
        throw Error(Fault::input, fmt::format("'{}' is not an ordinary file", path.string()));
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    void* address = nullptr;
    if (size > 0) {
        address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    const int failure = errno;
    ::close(fd);
    if (address == MAP_FAILED) {
        throw Error(Fault::input,
                    fmt::format("cannot map '{}': {}", path.string(), std::strerror(failure)));
    }
    return std::shared_ptr<const MappedFile>(
        new MappedFile(path, Bytes(static_cast<const std::byte*>(address), size)));
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) {
        ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

void release_pages(Bytes bytes) {
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    const auto first = (begin + page - 1) / page * page;
    const auto last = (begin + bytes.size()) / page * page;
    if (last > first) {
        ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
}

}  // namespace trocar
