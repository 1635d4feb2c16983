#include "cli/progress.h"

#include <fmt/format.h>

#include "trocar/report.h"
#include "util/display.h"

namespace trocar::cli {

std::string progress_line(std::string_view what, std::uint64_t done, std::uint64_t total,
                          double elapsed) {
    auto line = printable(what) + "  " + show(done, Show::count);
    if (total == 0 || done > total) {
        return line;
    }
    const auto share = static_cast<double>(done) / static_cast<double>(total);
    line += fmt::format(" of {}  {:.0f} %", show(total, Show::count), 100 * share);
    if (done > 0 && done < total) {
        line += fmt::format("  ~{} left", show(elapsed * (1 - share) / share, Show::seconds));
    }
    return line;
}

Progress::~Progress() {
    try {
        clear();
    } catch (const std::exception&) {
        // The terminal has gone; there is nothing to clear.
        shown_ = false;
    }
}

void Progress::update(std::string_view what, std::uint64_t done, std::uint64_t total,
                      Clock::time_point now) {
    if (!enabled_) {
        return;
    }
    if (what != what_) {
        clear();
        what_ = what;
        begin_ = now;
        last_ = now;
    }
    if (total > 0 && done >= total) {
        clear();
        return;
    }
    if (now - begin_ < std::chrono::seconds(1) ||
        (shown_ && now - last_ < std::chrono::milliseconds(100))) {
        return;
    }
    last_ = now;
    shown_ = true;
    const auto elapsed = std::chrono::duration<double>(now - begin_).count();
    const auto line = progress_line(what, done, total, elapsed);
    err_.write("\r\x1b[K" + ellipsis(line, err_.width() - 1));
}

void Progress::clear() {
    if (shown_) {
        shown_ = false;
        err_.write("\r\x1b[K");
    }
}

}  // namespace trocar::cli
