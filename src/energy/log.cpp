#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "energy/log_text.h"
#include "energy/reader.h"
#include "trocar/energy.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar {

namespace {

constexpr std::size_t problems_kept = 100;
// The year 5138; what is above it counts milliseconds or less.
constexpr double latest_unix = 1e11;

}  // namespace

void EnergyLog::add_problem(std::size_t line, std::string what) {
    if (++problem_count_ <= problems_kept) {
        problems_.push_back({line, std::move(what)});
    }
}

EnergyLog EnergyLog::load(const std::filesystem::path& path, const EnergyOptions& options) {
    return parse(read_file(path), path.string(), options);
}

EnergyLog EnergyLog::parse(std::string_view text, const std::string& name,
                           const EnergyOptions& options) {
    EnergyLog log;
    log.most_watts_ = options.most_watts;
    std::optional<energy::LogColumns> columns;
    if (text.starts_with("\xEF\xBB\xBF")) {
        text.remove_prefix(3);
    }
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = trim(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line.starts_with('#')) {
            continue;
        }
        if (!columns) {
            columns = energy::log_columns(line, name);
            log.cumulative_ = columns->cumulative;
            continue;
        }
        const auto fields = energy::log_fields(line, columns->separator);
        if (fields.size() <= std::max(columns->time, columns->value)) {
            log.add_problem(number, "has too few fields");
            continue;
        }
        const auto& when = fields[columns->time];
        auto at = energy::number_in(when);
        at = at ? std::optional(*at * columns->time_factor)
                : energy::iso_time(when, options.log_zone_minutes);
        const auto value = energy::number_in(fields[columns->value]);
        if (!at) {
            log.add_problem(number, energy::iso_time(when, 0)
                                        ? fmt::format("'{}' has no zone", when)
                                        : fmt::format("'{}' is no time", when));
        } else if (*at < 0 || *at > latest_unix) {
            log.add_problem(number, fmt::format("'{}' is no time in seconds since 1970", when));
        } else if (!value || *value < 0) {
            log.add_problem(number, fmt::format("'{}' is no {}", fields[columns->value],
                                                log.cumulative_ ? "energy" : "power"));
        } else if (const double shifted = *at + options.log_offset_seconds;
                   !log.rows_.empty() && shifted <= log.rows_.back().at) {
            log.add_problem(number, "its time is not after that of the row before");
        } else {
            log.rows_.push_back({shifted, *value * columns->value_factor});
        }
    }
    log.finish(name);
    return log;
}

void EnergyLog::finish(const std::string& name) {
    if (rows_.empty()) {
        throw Error(Fault::input,
                    problems_.empty() ? fmt::format("'{}' has no rows", name)
                                      : fmt::format("no row of '{}' is good; line {}: {}", name,
                                                    problems_.front().line, problems_.front().what),
                    "a log has a first line such as time,watts, and times in seconds since 1970 or "
                    "as 2026-01-02T03:04:05Z");
    }
    std::vector<double> steps;
    for (std::size_t i = 1; i < rows_.size(); ++i) {
        steps.push_back(rows_[i].at - rows_[i - 1].at);
    }
    if (!steps.empty()) {
        const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
        std::nth_element(steps.begin(), middle, steps.end());
        spacing_ = *middle;
    }
}

EnergyWindow EnergyLog::window(double begin_unix, double end_unix) const {
    EnergyWindow window;
    window.source = "log";
    window.begin_unix = begin_unix;
    window.end_unix = end_unix;
    const auto gap = [&](std::string why) {
        window.gap = std::move(why);
        return window;
    };
    if (!(end_unix > begin_unix)) {
        return gap("the window does not end after its begin");
    }
    window.seconds = end_unix - begin_unix;
    if (begin_unix < first_unix() || end_unix > last_unix()) {
        return gap(fmt::format("the log covers {:.3f} to {:.3f}, the window is {:.3f} to {:.3f}",
                               first_unix(), last_unix(), begin_unix, end_unix));
    }
    // From the last row at or before the begin to the first at or after the end.
    const auto later = [](double at, const Row& row) { return at < row.at; };
    const auto first =
        std::prev(std::upper_bound(rows_.begin(), rows_.end(), begin_unix, later)) - rows_.begin();
    double joules = 0;
    double uncertain = 0;
    for (auto i = static_cast<std::size_t>(first); rows_[i].at < end_unix; ++i) {
        const auto& a = rows_[i];
        const auto& b = rows_[i + 1];
        const double step = b.at - a.at;
        if (step > 3 * spacing_) {
            return gap(fmt::format("the log has no rows for {:.3g} s", step));
        }
        const double from = std::max(a.at, begin_unix);
        const double to = std::min(b.at, end_unix);
        const double share = (to - from) / step;
        const double change = b.value - a.value;
        if (!cumulative_) {
            if (std::max(a.value, b.value) > most_watts_) {
                return gap(fmt::format("the log has {:.3g} W", std::max(a.value, b.value)));
            }
            const auto watts_at = [&](double at) { return a.value + change * (at - a.at) / step; };
            joules += (watts_at(from) + watts_at(to)) / 2 * (to - from);
            uncertain += std::abs(change) * (share < 1 ? 1 : 0.5) * (to - from);
            continue;
        }
        if (change < 0) {
            return gap("the log's counter went back: it was reset in the window");
        }
        if (change > most_watts_ * step) {
            return gap(
                fmt::format("the log's counter jumped by {:.3g} J in {:.3g} s", change, step));
        }
        joules += change * share;
        uncertain += share < 1 ? change * std::max(share, 1 - share) : 0;
    }
    if (!(joules > 0)) {
        return gap(cumulative_ ? "the log's counter did not move in the window"
                               : "the log has 0 W throughout the window");
    }
    window.joules = joules;
    window.uncertainty_joules = uncertain;
    window.label = label();
    EnergyDomainWindow whole;
    whole.name = "log";
    whole.joules = joules;
    whole.uncertainty_joules = uncertain;
    window.domains.push_back(std::move(whole));
    return window;
}

}  // namespace trocar
