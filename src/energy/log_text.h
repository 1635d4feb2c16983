#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trocar::energy {

// Seconds since 1970 of "2026-01-02T03:04:05.678Z", also with a blank instead of T, and with +02:00
// or +0200 instead of Z. Without a zone: `zone_minutes` east of UTC, and nothing where that is
// absent.
std::optional<double> iso_time(std::string_view text, std::optional<int> zone_minutes);

// What the columns of a log are, told by the names in its first line.
struct LogColumns {
    char separator = ',';
    std::size_t time = 0;
    double time_factor = 1;  // to seconds, for times that are numbers
    std::size_t value = 0;
    double value_factor = 1;  // to watts or joules
    bool cumulative = false;  // joules counted up
};
// Throws Error(input) when they cannot be told. `name` is that of the file.
LogColumns log_columns(std::string_view first_line, const std::string& name);

// The fields of a row, quotes and blanks around them removed.
std::vector<std::string> log_fields(std::string_view line, char separator);

}  // namespace trocar::energy
