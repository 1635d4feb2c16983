#include "util/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "trocar/error.h"

namespace trocar {

namespace {

// The address ranges of all living mappings, by their end.
class Ranges {
public:
    void add(Bytes bytes) {
        const std::lock_guard lock(mutex_);
        by_end_[bytes.data() + bytes.size()] = bytes.data();
    }
    void remove(Bytes bytes) {
        const std::lock_guard lock(mutex_);
        by_end_.erase(bytes.data() + bytes.size());
    }
    bool hold(Bytes bytes) {
        const std::lock_guard lock(mutex_);
        const auto found = by_end_.lower_bound(bytes.data() + bytes.size());
        return found != by_end_.end() && found->second <= bytes.data();
    }

private:
    std::mutex mutex_;
    std::map<const std::byte*, const std::byte*> by_end_;
};

Ranges& ranges() {
    static auto* const all = new Ranges;  // never destroyed: mappings may outlive statics
    return *all;
}

}  // namespace

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
    const Bytes bytes(static_cast<const std::byte*>(address), size);
    if (size > 0) {
        ranges().add(bytes);
    }
    return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) {
        ranges().remove(bytes_);
        ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

void release_pages(Bytes bytes) {
    static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto into_page = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
    const auto skipped = (page - into_page) % page;
    if (bytes.size() < skipped + page || !ranges().hold(bytes)) {
        return;
    }
    const auto whole = (bytes.size() - skipped) / page * page;
    ::madvise(const_cast<std::byte*>(bytes.data() + skipped), whole, MADV_DONTNEED);
}

}  // namespace trocar
