#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "trocar/error.h"
#include "util/display.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

}  // namespace

Stream::Stream(int fd) : Stream(fd, ::isatty(fd) == 1) {}

void Stream::write(std::string_view text) {
    while (!text.empty()) {
        const auto count = ::write(fd_, text.data(), text.size());
        if (count < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno == EPIPE) {
                throw BrokenPipe();
            }
            throw Error(Fault::input,
                        fmt::format("cannot write the output: {}", std::strerror(errno)));
        }
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

std::size_t Stream::width() const {
    struct winsize size {};
    if (terminal_ && ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    const auto columns = std::strtoul(std::string(environment("COLUMNS")).c_str(), nullptr, 10);
    return columns >= 20 && columns <= 10000 ? columns : 100;
}

bool Stream::colour(std::string_view when) const {
    if (when != "auto") {
        return when == "always";
    }
    return terminal_ && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

bool only_ascii() {
    for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        std::string value(environment(name));
        if (!value.empty()) {
            std::transform(value.begin(), value.end(), value.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            return value.find("utf-8") == std::string::npos &&
                   value.find("utf8") == std::string::npos;
        }
    }
    return false;
}

namespace {

// Text of several lines stays so, the further ones set in.
std::string lines(std::string_view text, std::size_t indent) {
    std::string all;
    for (const auto& line : split(text, '\n')) {
        if (!all.empty()) {
            all += "\n" + std::string(indent, ' ');
        }
        all += printable(trim(line));
    }
    return all;
}

}  // namespace

std::string complaint(std::string_view label, std::string_view sentence, std::string_view hint,
                      bool colour) {
    const auto* strong = colour ? (label.empty() ? "\x1b[1;31m" : "\x1b[1;33m") : "";
    const auto* dim = colour ? "\x1b[2m" : "";
    const auto* end = colour ? "\x1b[0m" : "";
    auto text = fmt::format("{}trocar: {}{}{}\n", strong, label, end, lines(sentence, 4));
    if (!hint.empty()) {
        text += fmt::format("  {}hint:{} {}\n", dim, end, lines(hint, 8));
    }
    return text;
}

}  // namespace trocar::cli
