#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trocar/report.h"

namespace trocar::cli {

// Whoever read our output has gone: `trocar … | head`. Nothing to complain about.
struct BrokenPipe : std::runtime_error {
    BrokenPipe() : std::runtime_error("broken pipe") {}
};

// One of the standard streams.
class Stream {
public:
    explicit Stream(int fd);
    virtual ~Stream() = default;

    // Throws BrokenPipe, or Error(input) when it cannot be written.
    virtual void write(std::string_view text);

    bool is_terminal() const { return terminal_; }
    // Columns: those of the terminal, else COLUMNS, else 100.
    std::size_t width() const;
    // Does it take colours? `when`: "auto", "always" or "never".
    bool colour(std::string_view when) const;

protected:
    Stream(int fd, bool terminal) : fd_(fd), terminal_(terminal) {}

private:
    int fd_;
    bool terminal_;
};

// The locale says that characters beyond ASCII cannot be shown. Not said: they can.
bool only_ascii();

struct Console {
    Stream& out;
    Stream& err;
};

// "trocar: sentence" and, where there is one, "  hint: …". `label`: "", or "warning: ".
std::string complaint(std::string_view label, std::string_view sentence, std::string_view hint,
                      bool colour);

}  // namespace trocar::cli
