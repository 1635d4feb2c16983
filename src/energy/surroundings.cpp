#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <thread>

#include "energy/reader.h"
#include "util/text.h"

namespace trocar::energy {

namespace {

template <class Clock>
double seconds_of() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// A file of sysfs: one read gives all of it.
FileText read_small(const std::filesystem::path& path) {
    FileText file;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        file.error = errno;
        return file;
    }
    std::array<char, 4096> buffer{};
    const auto count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0) {
        file.error = errno;
    } else {
        file.text.assign(buffer.data(), static_cast<std::size_t>(count));
    }
    ::close(fd);
    return file;
}

// The counter of a whole socket: of no process, on the CPU that the kernel names for it.
int open_socket_event(const PerfEvent& event) {
    perf_event_attr attributes{};
    attributes.type = event.type;
    attributes.size = sizeof attributes;
    attributes.config = event.config;
    const auto fd =
        ::syscall(SYS_perf_event_open, &attributes, -1, event.cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : static_cast<int>(fd);
}

std::optional<std::uint64_t> read_count(int fd) {
    std::uint64_t count = 0;
    if (::read(fd, &count, sizeof count) != sizeof count) {
        return std::nullopt;
    }
    return count;
}

}  // namespace

Surroundings this_machine() {
    Surroundings machine;
    machine.steady = seconds_of<std::chrono::steady_clock>;
    machine.unix_time = seconds_of<std::chrono::system_clock>;
    machine.sleep = [](double seconds) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    };
    machine.read_file = read_small;
    machine.perf_open = open_socket_event;
    machine.perf_read = read_count;
    machine.perf_close = [](int fd) { ::close(fd); };
    return machine;
}

Found unavailable(const std::string& source, std::string why, std::string remedy) {
    Found found;
    found.source.name = source;
    found.source.unavailable = std::move(why);
    found.source.remedy = std::move(remedy);
    return found;
}

std::optional<double> number_in(std::string_view text) {
    text = trim(text);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) {
        return std::nullopt;
    }
    return number;
}

std::optional<std::uint64_t> count_in(std::string_view text) {
    text = trim(text);
    int base = 10;
    if (text.starts_with("0x")) {
        text.remove_prefix(2);
        base = 16;
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return number;
}

std::optional<std::string> word_in(const Surroundings& machine, const std::filesystem::path& file) {
    const auto read = machine.read_file(file);
    if (read.error != 0) {
        return std::nullopt;
    }
    return std::string(trim(read.text));
}

}  // namespace trocar::energy
