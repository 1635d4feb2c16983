#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trocar {

// Text as a person sees it. All functions take UTF-8 and never fail: a byte that is not part of it
// counts as one character, U+FFFD.

// With every invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// As above, and safe to send to a terminal: control characters, also those that turn the direction
// of writing, become visible escapes ("\n", "\x1b", "\u202e").
std::string printable(std::string_view text);

// Columns that the text takes on a terminal: 0 for combining characters, 2 for East Asian wide
// ones.
std::size_t display_width(std::string_view text);

// The text, or its beginning and its end around "…" when it is wider than `width` (≥ 1).
std::string ellipsis(std::string_view text, std::size_t width);

// Lines of at most `width` columns, broken at spaces; a word that is wider stands alone. 0: one
// line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

std::string pad_left(std::string_view text, std::size_t width);   // spaces before
std::string pad_right(std::string_view text, std::size_t width);  // spaces after

}  // namespace trocar
