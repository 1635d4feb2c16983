#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/terminal.h"

namespace trocar::cli {

// One line on a terminal that says how far the work is: shown after a second, renewed ten times a
// second at most, gone when the work is done.
class Progress {
public:
    using Clock = std::chrono::steady_clock;

    explicit Progress(Stream& err, bool enabled) : err_(err), enabled_(enabled) {}
    ~Progress();

    void update(std::string_view what, std::uint64_t done, std::uint64_t total,
                Clock::time_point now = Clock::now());
    void clear();  // before anything else is written to the terminal

private:
    Stream& err_;
    bool enabled_;
    bool shown_ = false;
    std::string what_;
    Clock::time_point begin_;
    Clock::time_point last_;
};

// "calibrating  120 of 500  24 %  ~12.0 s left"; `elapsed` in seconds.
std::string progress_line(std::string_view what, std::uint64_t done, std::uint64_t total,
                          double elapsed);

}  // namespace trocar::cli
