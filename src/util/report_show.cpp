#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "trocar/report.h"
#include "util/display.h"
#include "util/text.h"

namespace trocar {

namespace {

std::string grouped(std::int64_t value) {
    auto digits = fmt::format("{}", value);
    const std::size_t first = value < 0 ? 1 : 0;
    for (auto at = digits.size(); at > first + 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

// `digits` significant digits, never an exponent; whole numbers are not cut.
std::string significant(double value, int digits) {
    const auto magnitude = std::abs(value);
    const auto before = magnitude < 1 ? 1 : static_cast<int>(std::floor(std::log10(magnitude))) + 1;
    return fmt::format("{:.{}f}", value, std::max(0, digits - before));
}

// `value` in the largest of `units` (each `step` times the one before) that leaves at least 1, also
// after rounding: 999.96 k is 1.000 M.
template <std::size_t N>
std::string scaled(double value, double step, const std::array<const char*, N>& units, int digits) {
    const auto before = static_cast<int>(std::floor(std::log10(step - 1))) + 1;
    const auto limit = step - 0.5 * std::pow(10.0, -std::max(0, digits - before));
    std::size_t unit = 0;
    while (unit + 1 < N && std::abs(value) >= limit) {
        value /= step;
        ++unit;
    }
    return fmt::format("{} {}", significant(value, digits), units[unit]);
}

std::string compact(double value) {
    if (std::abs(value) < 999.5) {
        const bool whole = value == std::floor(value);
        return whole ? fmt::format("{:.0f}", value) : significant(value, 4);
    }
    static constexpr std::array units{"k", "M", "G", "T", "P", "E", "Z"};
    return scaled(value / 1000, 1000, units, 4);
}

std::string bytes(double value) {
    if (std::abs(value) < 1024) {
        return fmt::format("{:.0f} B", value);
    }
    static constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return scaled(value / 1024, 1024, units, 3);
}

// A share that is not quite nothing, or not quite all, never reads as such.
std::string percent(double value) {
    const auto hundredths = 100 * value;
    if (hundredths > 0 && hundredths < 0.05) {
        return "<0.1 %";
    }
    if (hundredths > 99.95 && hundredths < 100) {
        return ">99.9 %";
    }
    return fmt::format("{:.1f} %", hundredths);
}

std::string duration(double seconds) {
    const auto magnitude = std::abs(seconds);
    if (magnitude == 0) {
        return "0 s";
    }
    if (magnitude < 119.5) {
        static constexpr std::array units{"ns", "µs", "ms", "s"};
        if (magnitude >= 0.9995) {
            return significant(seconds, 3) + " s";
        }
        return scaled(seconds * 1e9, 1000, units, 3);
    }
    const auto whole = static_cast<std::int64_t>(std::min(std::round(magnitude), 1e15));
    const auto* sign = seconds < 0 ? "-" : "";
    if (whole < 7200) {
        return fmt::format("{}{} min {:02} s", sign, whole / 60, whole % 60);
    }
    return fmt::format("{}{} h {:02} min", sign, whole / 3600, whole % 3600 / 60);
}

std::string ratio(double value) {
    const auto magnitude = std::abs(value);
    return fmt::format("{:.{}f}×", value, magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0);
}

std::string number(double value, Show how) {
    if (std::isnan(value)) {
        return "NaN";
    }
    if (std::isinf(value)) {
        return value < 0 ? "-inf" : "inf";
    }
    switch (how) {
        case Show::plain:
            break;
        case Show::count:
            if (value == std::floor(value) && std::abs(value) < 1e18) {
                return grouped(static_cast<std::int64_t>(value));
            }
            break;
        case Show::compact:
            return compact(value);
        case Show::bytes:
            return bytes(value);
        case Show::percent:
            return percent(value);
        case Show::seconds:
            return duration(value);
        case Show::nanoseconds:
            return duration(value * 1e-9);
        case Show::ratio:
            return ratio(value);
        case Show::decibels:
            return fmt::format("{:.1f} dB", value);
    }
    return fmt::format("{:.6g}", value);
}

struct Shown {
    Show how;
    std::string operator()(std::monostate) const { return "–"; }
    std::string operator()(bool value) const { return value ? "yes" : "no"; }
    std::string operator()(std::int64_t value) const {
        if (how == Show::plain) {
            return fmt::format("{}", value);
        }
        return how == Show::count ? grouped(value) : number(static_cast<double>(value), how);
    }
    std::string operator()(double value) const { return number(value, how); }
    std::string operator()(const std::string& value) const { return printable(value); }
    std::string operator()(const std::vector<std::string>& values) const {
        return printable(fmt::format("{}", join(values, ", ")));
    }
};

}  // namespace

std::string show(const Cell& cell, Show how) {
    return std::visit(Shown{how}, cell.value);
}

const ReportFormat* find_report_format(std::string_view name) {
    for (const auto* format : report_formats()) {
        if (format->name == name) {
            return format;
        }
    }
    return nullptr;
}

const ReportFormat* report_format_for(const std::filesystem::path& path) {
    const auto suffix = path.extension().string();
    for (const auto* format : report_formats()) {
        for (const auto& known : split(format->suffixes, ' ')) {
            if (!suffix.empty() && known == suffix) {
                return format;
            }
        }
    }
    return nullptr;
}

}  // namespace trocar
