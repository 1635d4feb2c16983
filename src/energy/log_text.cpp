#include "energy/log_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

#include "energy/reader.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::energy {

namespace {

// Takes `count` digits off the front.
std::optional<int> digits(std::string_view& text, std::size_t count) {
    if (text.size() < count) {
        return std::nullopt;
    }
    int number = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (text[i] < '0' || text[i] > '9') {
            return std::nullopt;
        }
        number = number * 10 + (text[i] - '0');
    }
    text.remove_prefix(count);
    return number;
}

bool take(std::string_view& text, char c) {
    const bool there = text.starts_with(c);
    text.remove_prefix(there ? 1 : 0);
    return there;
}

// ".678" or ",678"; 0 where there is none.
std::optional<double> fraction(std::string_view& text) {
    if (text.empty() || (text.front() != '.' && text.front() != ',')) {
        return 0;
    }
    text.remove_prefix(1);
    double value = 0;
    double place = 0.1;
    std::size_t count = 0;
    for (; count < text.size() && text[count] >= '0' && text[count] <= '9'; ++count) {
        value += place * (text[count] - '0');
        place /= 10;
    }
    text.remove_prefix(count);
    return count > 0 ? std::optional(value) : std::nullopt;
}

// Minutes east of UTC, of "Z", "+02", "+0200", "+02:00", or of nothing.
std::optional<int> zone(std::string_view text, std::optional<int> otherwise) {
    if (text.empty()) {
        return otherwise;
    }
    if (text == "Z" || text == "z") {
        return 0;
    }
    const int sign = text.front() == '-' ? -1 : 1;
    if (text.front() != '+' && text.front() != '-') {
        return std::nullopt;
    }
    text.remove_prefix(1);
    const auto hours = digits(text, 2);
    take(text, ':');
    const auto minutes = text.empty() ? std::optional(0) : digits(text, 2);
    if (!hours || !minutes || !text.empty() || *hours > 23 || *minutes > 59) {
        return std::nullopt;
    }
    return sign * (*hours * 60 + *minutes);
}

// The words of a column's name: "Power [mW]" has "Power" and "mW".
std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> words(1);
    for (const char c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
            words.back() += c;
        } else if (!words.back().empty()) {
            words.emplace_back();
        }
    }
    return words;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

struct ValueUnit {
    std::string_view name;
    double factor;
    bool energy;
};
constexpr std::array<ValueUnit, 17> value_units{{{"w", 1, false},
                                                 {"watt", 1, false},
                                                 {"watts", 1, false},
                                                 {"mw", 1e-3, false},
                                                 {"milliwatts", 1e-3, false},
                                                 {"uw", 1e-6, false},
                                                 {"kw", 1e3, false},
                                                 {"kilowatts", 1e3, false},
                                                 {"j", 1, true},
                                                 {"joule", 1, true},
                                                 {"joules", 1, true},
                                                 {"mj", 1e-3, true},
                                                 {"uj", 1e-6, true},
                                                 {"kj", 1e3, true},
                                                 {"wh", 3600, true},
                                                 {"kwh", 3.6e6, true},
                                                 {"mwh", 3.6, true}}};

const ValueUnit* unit_of(const std::vector<std::string>& words) {
    for (const auto& word : words) {
        if (word == "MW" || word == "MJ" || word == "MWh") {
            return nullptr;  // mega: no log of one machine
        }
        const auto found =
            std::find_if(value_units.begin(), value_units.end(),
                         [&](const ValueUnit& unit) { return unit.name == lower(word); });
        if (found != value_units.end()) {
            return &*found;
        }
    }
    return nullptr;
}

// To seconds; nothing when the column is no time.
std::optional<double> time_factor(const std::vector<std::string>& words) {
    bool time = false;
    double factor = 1;
    for (const auto& word : words) {
        const auto small = lower(word);
        time = time || small == "time" || small == "timestamp" || small == "date" ||
               small == "datetime" || small == "unix" || small == "epoch";
        factor = small == "ms" ? 1e-3 : small == "us" ? 1e-6 : small == "ns" ? 1e-9 : factor;
    }
    return time ? std::optional(factor) : std::nullopt;
}

}  // namespace

std::optional<double> iso_time(std::string_view text, std::optional<int> zone_minutes) {
    const auto year = digits(text, 4);
    const bool dash = take(text, '-');
    const auto month = digits(text, 2);
    const bool second_dash = take(text, '-');
    const auto day = digits(text, 2);
    if (!year || !month || !day || !dash || !second_dash) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    if (!date.ok() || (!take(text, 'T') && !take(text, 't') && !take(text, ' '))) {
        return std::nullopt;
    }
    const auto hour = digits(text, 2);
    const bool colon = take(text, ':');
    const auto minute = digits(text, 2);
    const auto second = take(text, ':') ? digits(text, 2) : std::optional(0);
    const auto part = fraction(text);
    const auto east = zone(trim(text), zone_minutes);
    if (!hour || !colon || !minute || !second || !part || !east || *hour > 23 || *minute > 59 ||
        *second > 60) {
        return std::nullopt;
    }
    const auto days = std::chrono::sys_days(date).time_since_epoch().count();
    return static_cast<double>(days) * 86400 + *hour * 3600 + (*minute - *east) * 60 + *second +
           *part;
}

std::vector<std::string> log_fields(std::string_view line, char separator) {
    auto fields = split(line, separator);
    for (auto& field : fields) {
        auto text = trim(field);
        if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
            text = trim(text.substr(1, text.size() - 2));
        }
        field = std::string(text);
    }
    return fields;
}

LogColumns log_columns(std::string_view first_line, const std::string& name) {
    LogColumns columns;
    for (const char separator : {',', ';', '\t'}) {
        if (first_line.find(separator) != std::string_view::npos) {
            columns.separator = separator;
            break;
        }
    }
    const auto fields = log_fields(first_line, columns.separator);
    std::vector<std::size_t> times;
    std::vector<std::size_t> powers;
    std::vector<std::size_t> energies;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto words = words_of(fields[i]);
        if (time_factor(words)) {
            times.push_back(i);
        } else if (const auto* unit = unit_of(words)) {
            (unit->energy ? energies : powers).push_back(i);
        }
    }
    const auto refuse = [&](const std::string& what) {
        throw Error(
            Fault::input,
            fmt::format("the first line of '{}' {}: '{}'", name, what, first_line.substr(0, 100)),
            "name the columns, with the unit: time,watts or time,joules");
    };
    if (times.size() != 1) {
        refuse(times.empty() ? "names no column of time" : "names several columns of time");
    }
    // Energy that was counted says more than samples of power.
    const auto& values = energies.empty() ? powers : energies;
    if (values.size() != 1) {
        refuse(values.empty() ? "names no column of watts or joules"
                              : "names several columns of one kind");
    }
    columns.time = times.front();
    columns.time_factor = *time_factor(words_of(fields[columns.time]));
    columns.value = values.front();
    const auto* unit = unit_of(words_of(fields[columns.value]));
    columns.value_factor = unit->factor;
    columns.cumulative = unit->energy;
    return columns;
}

}  // namespace trocar::energy
