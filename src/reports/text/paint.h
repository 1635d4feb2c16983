#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/report.h"

namespace trocar::text {

// Emphasis, where the terminal has it.
struct Paint {
    bool colour = false;
    std::string bold(std::string_view text) const { return sgr("\x1b[1m", text); }
    std::string dim(std::string_view text) const { return sgr("\x1b[2m", text); }

private:
    std::string sgr(const char* begin, std::string_view text) const {
        return colour && !text.empty() ? std::string(begin).append(text).append("\x1b[0m")
                                       : std::string(text);
    }
};

// Why values are missing, said once below the block that misses them. Few reasons are numbered;
// many are only counted.
class Footnotes {
public:
    explicit Footnotes(bool ascii) : ascii_(ascii) {}

    // All missing cells of the block, before the first call of `mark`.
    void collect(const Cell& cell);
    // What follows "–" in the place of this cell: "¹"; empty where it has no reason.
    std::string mark(const Cell& cell) const;
    std::string below(std::size_t width, const Paint& paint) const;

private:
    static constexpr std::size_t most = 5;
    std::string sign(std::size_t index) const;
    bool ascii_;
    std::vector<std::string>
        reasons_;  // distinct, in order; one more than `most` when there are more
};

// The cell as shown, with its footnote.
std::string cell_text(const Cell& cell, Show how, const Footnotes& notes);

std::string write_section(std::string_view title, const std::vector<Scalar>& scalars,
                          std::size_t key_width, const Style& style);
std::string write_table(const Table& table, const Style& style);

// Lines of `text`, not wider than the terminal, each painted by `paint` and ended.
std::string paragraph(std::string_view text, std::size_t width, const Paint& paint);

}  // namespace trocar::text
