#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trocar {

// The candidate that somebody who typed `name` most likely meant: nearest by edit distance (a swap
// of two neighbours is one edit, a difference in case half of one), else the shortest that contains
// `name`. Nothing when none is near enough. Ties go to the earliest.
std::optional<std::string> closest(std::string_view name, std::span<const std::string> candidates);

// "did you mean 'x'?", or empty: a hint to put in front of another one.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// The parts of `text` between `separator`s; one empty part for an empty text.
std::vector<std::string> split(std::string_view text, char separator);

// The items one after the other, with `separator` between them.
std::string join(std::span<const std::string> items, std::string_view separator);
std::string join(std::span<const std::string_view> items, std::string_view separator);
std::string join(std::span<const std::int64_t> items, std::string_view separator);
std::string join(std::span<const std::int32_t> items, std::string_view separator);
std::string join(std::span<const std::size_t> items, std::string_view separator);
std::string join(std::span<const float> items, std::string_view separator);
std::string join(std::span<const double> items, std::string_view separator);
std::string join(const std::set<std::string>& items, std::string_view separator);

// Without blanks at both ends.
std::string_view trim(std::string_view text);

// "1 op", "3 ops": a number with its noun.
std::string counted(std::size_t count, std::string_view noun);

// A field of a CSV file, as RFC 4180 has it: in quotes where it has commas, quotes or ends of
// lines, or blanks at an end.
std::string csv_field(std::string text);

// "512", "512M", "512 MiB", "1.5GB": K, M, G and T are powers of 1024, kB to TB of 1000. Nothing
// when it is no size.
std::optional<std::uint64_t> parse_size(std::string_view text);

// "0.05", "5 %", "5%": a share, whether it lies between 0 and 1 or not. Nothing when it is no
// number.
std::optional<double> parse_share(std::string_view text);

// With the letters A to Z in lower case.
std::string lower(std::string text);

}  // namespace trocar
