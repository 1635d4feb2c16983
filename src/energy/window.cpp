#include "energy/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trocar::energy {

namespace {

EnergyDomainWindow started(const Channel& channel) {
    EnergyDomainWindow part;
    part.name = channel.domain.name;
    part.summed = channel.domain.summed;
    return part;
}

EnergyDomainWindow without(EnergyDomainWindow part, std::string why) {
    part.joules.reset();
    part.uncertainty_joules.reset();
    part.gap = std::move(why);
    return part;
}

// The sum over the summed domains, or the gap of the first of them that has one.
void add_up(EnergyWindow& window, EnergyLabel label) {
    double joules = 0;
    std::optional<double> uncertainty = 0;
    bool any = false;
    for (const auto& part : window.domains) {
        if (!part.summed) {
            continue;
        }
        if (!part.joules) {
            window.gap = part.gap;
            return;
        }
        any = true;
        joules += *part.joules;
        uncertainty = uncertainty && part.uncertainty_joules
                          ? std::optional(*uncertainty + *part.uncertainty_joules)
                          : std::nullopt;
    }
    if (!any) {
        window.gap = "no domain is summed";
        return;
    }
    window.joules = joules;
    window.uncertainty_joules = uncertainty;
    window.label = label;
}

// False, with the gap, where time did not pass.
bool timed(EnergyWindow& window, double seconds) {
    if (!(seconds > 0) || !std::isfinite(seconds)) {
        window.gap = seconds < 0 ? fmt::format("the clock went back by {:.3g} s", -seconds)
                                 : std::string("no time passed between begin and end");
        return false;
    }
    window.seconds = seconds;
    return true;
}

EnergyDomainWindow integrate(const Channel& channel, std::size_t index,
                             const std::vector<Edge>& samples, const Found& found,
                             double most_watts) {
    auto part = started(channel);
    double joules = 0;
    double steps = 0;
    double lowest = samples.front().values[index].watts;
    double highest = lowest;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto& value = samples[i].values[index];
        if (!value.failed.empty()) {
            return without(part, value.failed);
        }
        if (!std::isfinite(value.watts) || value.watts < 0 || value.watts > most_watts) {
            return without(part,
                           fmt::format("{} read {} W, which cannot be", part.name, value.watts));
        }
        lowest = std::min(lowest, value.watts);
        highest = std::max(highest, value.watts);
        if (i > 0) {
            const double last = samples[i - 1].values[index].watts;
            const double step = samples[i].at - samples[i - 1].at;
            joules += (last + value.watts) / 2 * step;
            steps += std::abs(value.watts - last) / 2 * step;
        }
    }
    if (highest == 0) {
        return without(part, fmt::format("{} read 0 W throughout", part.name));
    }
    const double seconds = samples.back().at - samples.front().at;
    part.joules = joules;
    part.uncertainty_joules = steps + found.lag_seconds * (highest - lowest) +
                              found.source.resolution.value_or(0) / 2 * seconds;
    return part;
}

}  // namespace

std::size_t leading(const std::vector<Channel>& channels) {
    return static_cast<std::size_t>(
        std::find_if(channels.begin(), channels.end(),
                     [](const Channel& channel) { return channel.domain.summed; }) -
        channels.begin());
}

EnergyDomainWindow energy_counted(const Channel& channel, const Value& before, const Value& after,
                                  double seconds, double most_watts) {
    auto part = started(channel);
    const auto& name = part.name;
    for (const auto* value : {&before, &after}) {
        if (!value->failed.empty()) {
            return without(part, value->failed);
        }
        if (channel.range > 0 && value->count > channel.range) {
            return without(part, fmt::format("{} read {}, which is above its range of {}", name,
                                             value->count, channel.range));
        }
    }
    if (after.count == before.count) {
        return without(part,
                       fmt::format("the counter of {} did not move in {:.3g} s", name, seconds));
    }
    const bool back = after.count < before.count;
    if (back && channel.range == 0) {
        return without(
            part, fmt::format("the counter of {} went back: it was reset in the window", name));
    }
    // A second wrap would look the same.
    const double range_joules = static_cast<double>(channel.range) * channel.unit;
    if (channel.range > 0 && most_watts * seconds > range_joules) {
        return without(
            part,
            fmt::format("{:.3g} s are too long: the counter of {} begins anew after {:.0f} J, "
                        "which {:.0f} W take in {:.3g} s, and two wraps cannot be told from "
                        "one",
                        seconds, name, range_joules, most_watts, range_joules / most_watts));
    }
    const auto counts =
        back ? channel.range - before.count + after.count : after.count - before.count;
    const double joules = static_cast<double>(counts) * channel.unit;
    if (joules > most_watts * seconds) {
        return without(
            part, back ? fmt::format("the counter of {} went back, and a wrap would mean {:.0f} W: "
                                     "it was reset in the window",
                                     name, joules / seconds)
                       : fmt::format("the counter of {} jumped by {:.3g} J in {:.3g} s, more than "
                                     "{:.0f} W",
                                     name, joules, seconds, most_watts));
    }
    part.joules = joules;
    return part;
}

void fill_counted(EnergyWindow& window, const std::vector<Channel>& channels, const Edge& begin,
                  const Edge& end, std::optional<double> tick, double most_watts) {
    const double seconds = end.at - begin.at;
    if (!timed(window, seconds)) {
        return;
    }
    const auto lead = leading(channels);
    for (std::size_t i = 0; i < channels.size(); ++i) {
        // A counter that steps may step once more or less: that much is no reset.
        const double allowed = most_watts * (1 + 2 * tick.value_or(0) / seconds);
        auto part = energy_counted(channels[i], begin.values[i], end.values[i], seconds, allowed);
        if (part.joules && tick) {
            const auto edge = [&](const Edge& at) {
                return at.span + (at.aligned && i == lead ? 0 : *tick);
            };
            part.uncertainty_joules = *part.joules / seconds * (edge(begin) + edge(end)) +
                                      2 * std::max(channels[i].unit, channels[i].resolution);
        }
        window.domains.push_back(std::move(part));
    }
    add_up(window, EnergyLabel::measured);
}

void fill_integrated(EnergyWindow& window, const std::vector<Channel>& channels,
                     const std::vector<Edge>& samples, const Found& found, double most_watts) {
    if (samples.size() < 2) {
        window.gap = "there are fewer than two samples";
        return;
    }
    if (!timed(window, samples.back().at - samples.front().at)) {
        return;
    }
    const double longest = 10 * found.sample_seconds + 0.5;
    for (std::size_t i = 1; i < samples.size(); ++i) {
        const double step = samples[i].at - samples[i - 1].at;
        if (step < 0) {
            window.seconds.reset();
            window.gap = fmt::format("the clock went back by {:.3g} s", -step);
            return;
        }
        if (step > longest) {
            window.gap = fmt::format("for {:.3g} s nothing was sampled", step);
            return;
        }
    }
    for (std::size_t i = 0; i < channels.size(); ++i) {
        window.domains.push_back(integrate(channels[i], i, samples, found, most_watts));
    }
    add_up(window, EnergyLabel::integrated);
}

}  // namespace trocar::energy

namespace trocar {

std::string_view name_of(EnergyLabel label) {
    switch (label) {
        case EnergyLabel::measured:
            return "measured";
        case EnergyLabel::integrated:
            return "integrated";
        case EnergyLabel::modelled:
            return "modelled";
        case EnergyLabel::unavailable:
            break;
    }
    return "unavailable";
}

std::optional<double> recommended_seconds(const EnergySource& source, double error) {
    if (!source.tick_seconds || !(error > 0)) {
        return std::nullopt;
    }
    return 2 * *source.tick_seconds / error;
}

void subtract_idle(EnergyWindow& window, const EnergyIdle& before,
                   const std::optional<EnergyIdle>& after) {
    window.idle_watts.reset();
    window.net_joules.reset();
    window.net_uncertainty_joules.reset();
    window.idle_drift = false;
    const bool both = before.watts && after && after->watts;
    const EnergyIdle& one = before.watts || !after ? before : *after;
    if (!one.watts || !window.joules || !window.seconds) {
        return;
    }
    double watts = *one.watts;
    auto uncertain = one.uncertainty_watts;
    if (both) {
        const double difference = std::abs(*after->watts - *before.watts);
        watts = (*before.watts + *after->watts) / 2;
        if (before.uncertainty_watts && after->uncertainty_watts) {
            const double sum = *before.uncertainty_watts + *after->uncertainty_watts;
            window.idle_drift = difference > sum;
            uncertain = sum / 2 + difference / 2;
        } else {
            window.idle_drift = difference > watts / 20;
            uncertain.reset();
        }
        if (window.idle_drift) {
            window.notes.push_back(
                fmt::format("idle power drifted from {:.3g} W before to {:.3g} W after",
                            *before.watts, *after->watts));
        }
    }
    window.idle_watts = watts;
    window.net_joules = *window.joules - watts * *window.seconds;
    if (uncertain && window.uncertainty_joules) {
        window.net_uncertainty_joules = *window.uncertainty_joules + *uncertain * *window.seconds;
    }
}

}  // namespace trocar
