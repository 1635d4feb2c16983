#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "energy/reader.h"
#include "energy/window.h"

namespace trocar::energy {

namespace {

void leave_out(Channel& channel, std::string why) {
    channel.domain.summed = false;
    channel.domain.unsummed_reason = std::move(why);
}

bool any_summed(const std::vector<Channel>& channels, Part part) {
    return std::any_of(channels.begin(), channels.end(), [&](const Channel& channel) {
        return channel.part == part && channel.domain.summed;
    });
}

// What moves between two changes of the leading counter, seen as often as time allows.
struct Ticks {
    std::vector<double> lengths;
    bool moved = false;
    std::string failed;
};

Ticks watch(Reader& reader, std::size_t channel, double limit, const Surroundings& machine) {
    constexpr std::size_t wanted = 9;
    Ticks ticks;
    const double start = machine.steady();
    auto last = reader.read(channel);
    double changed = 0;
    while (last.failed.empty() && ticks.lengths.size() < wanted) {
        auto now = reader.read(channel);
        const double at = machine.steady();
        if (at - start > limit) {
            break;
        }
        if (now.failed.empty() && now.count == last.count) {
            continue;
        }
        // The first change comes somewhere in a tick: only what lies between changes counts.
        if (ticks.moved) {
            ticks.lengths.push_back(at - changed);
        }
        ticks.moved = true;
        changed = at;
        last = std::move(now);
    }
    ticks.failed = last.failed;
    return ticks;
}

// Two counters that read the same, before and after they moved, are one.
bool mirrored(Reader& reader, std::size_t one, std::size_t other) {
    for (int attempt = 0; attempt < 8; ++attempt) {
        const auto first = reader.read(one);
        const auto second = reader.read(other);
        const auto again = reader.read(one);
        if (!first.failed.empty() || !second.failed.empty() || !again.failed.empty()) {
            return false;
        }
        if (first.count == again.count) {
            return first.count == second.count;
        }
    }
    return false;
}

using Values = std::vector<Value>;

Values read_all(const Found& found) {
    Values values;
    for (std::size_t i = 0; i < found.channels.size(); ++i) {
        values.push_back(found.reader->read(i));
    }
    return values;
}

std::vector<std::vector<bool>> mirrors(const Found& found) {
    const auto count = found.channels.size();
    std::vector<std::vector<bool>> same(count, std::vector<bool>(count));
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = i + 1; j < count; ++j) {
            same[i][j] = found.channels[i].domain.summed && found.channels[j].domain.summed &&
                         found.channels[i].part == found.channels[j].part &&
                         mirrored(*found.reader, i, j);
        }
    }
    return same;
}

void drop_dead(Found& found, const Values& before, const Values& after, double seconds) {
    for (std::size_t i = 0; i < found.channels.size(); ++i) {
        auto& channel = found.channels[i];
        if (!channel.domain.summed) {
            continue;
        }
        if (!before[i].failed.empty() || !after[i].failed.empty()) {
            leave_out(channel, before[i].failed.empty() ? after[i].failed : before[i].failed);
        } else if (before[i].count == after[i].count) {
            leave_out(channel, fmt::format("its counter did not move in {:.2g} s", seconds));
        } else {
            continue;
        }
        found.source.notes.push_back(fmt::format("{} is not in the sum: {}", channel.domain.name,
                                                 channel.domain.unsummed_reason));
    }
}

void give_up(Found& found, const std::string& why, const std::string& remedy) {
    found.reader.reset();
    found.source.label = EnergyLabel::unavailable;
    found.source.unavailable = why;
    found.source.remedy = remedy;
    found.source.tick_seconds.reset();
}

void probe_counters(Found& found, const EnergyOptions& options, const Surroundings& machine) {
    auto& source = found.source;
    auto& channels = found.channels;
    const auto lead = leading(channels);
    if (lead == channels.size()) {
        give_up(found, "none of its domains can be summed", "Name another source.");
        return;
    }
    const double start = machine.steady();
    const auto before = read_all(found);
    const auto same = mirrors(found);
    auto ticks = watch(*found.reader, lead, options.probe_seconds, machine);
    const auto still_same = mirrors(found);
    const auto after = read_all(found);
    for (std::size_t i = 0; i < channels.size(); ++i) {
        for (std::size_t j = i + 1; j < channels.size(); ++j) {
            if (same[i][j] && still_same[i][j] && before[j].count != after[j].count) {
                leave_out(channels[j], "it mirrors " + channels[i].domain.name);
            }
        }
    }
    drop_dead(found, before, after, machine.steady() - start);
    if (leading(channels) == channels.size()) {
        give_up(found,
                fmt::format("{}: {}", channels[lead].domain.name,
                            channels[lead].domain.unsummed_reason),
                "Counters that stand still are usual in virtual machines; an outside meter can be "
                "used by log:FILE or command:COMMAND.");
    } else if (!ticks.lengths.empty()) {
        std::sort(ticks.lengths.begin(), ticks.lengths.end());
        source.tick_seconds = ticks.lengths[ticks.lengths.size() / 2];
    } else {
        source.notes.push_back(
            fmt::format("its tick is not known: not two changes of the counter in {:.2g} s",
                        options.probe_seconds));
    }
}

}  // namespace

void choose_summed(Found& found, EnergyScope scope) {
    auto& channels = found.channels;
    const bool platform = scope == EnergyScope::platform && any_summed(channels, Part::platform);
    const bool package = any_summed(channels, Part::package);
    const bool core = any_summed(channels, Part::core);
    if (scope == EnergyScope::platform && !platform) {
        found.source.notes.push_back("this machine has no psys: packages and DRAM are summed");
    }
    bool first_platform = true;
    for (auto& channel : channels) {
        if (!channel.domain.summed) {
            continue;  // a duplicate, left out before
        }
        const auto part = channel.part;
        if (platform) {
            if (part != Part::platform) {
                leave_out(channel, "inside psys");
            } else if (!std::exchange(first_platform, false)) {
                leave_out(channel, "another psys is summed");
            }
        } else if (part == Part::platform) {
            // Alone, it is better than nothing.
            if (package || core || !std::exchange(first_platform, false)) {
                leave_out(channel, "psys holds the others; choose the platform as scope for it");
            }
        } else if (part == Part::core || part == Part::uncore) {
            if (package) {
                leave_out(channel, "inside its package");
            }
        } else if (part == Part::dram) {
            if (!package && !core && any_summed(channels, Part::platform)) {
                leave_out(channel, "inside psys");
            }
        } else if (part == Part::other) {
            leave_out(channel, "what it holds is not known");
        }
    }
}

void probe(Found& found, const EnergyOptions& options, const Surroundings& machine) {
    auto& source = found.source;
    if (!found.reader) {
        return;
    }
    if (source.label == EnergyLabel::integrated) {
        source.tick_seconds = found.sample_seconds;
    } else if (!found.probe) {
        source.tick_seconds = options.tick_seconds;
    } else {
        probe_counters(found, options, machine);
    }
    for (const auto& channel : found.channels) {
        source.domains.push_back(channel.domain);
        if (!channel.domain.summed || source.label != EnergyLabel::measured) {
            continue;
        }
        source.resolution =
            std::max({channel.unit, channel.resolution, source.resolution.value_or(0)});
        if (channel.range > 0) {
            const double seconds =
                static_cast<double>(channel.range) * channel.unit / options.most_watts;
            source.longest_window_seconds =
                std::min(seconds, source.longest_window_seconds.value_or(seconds));
        }
    }
}

}  // namespace trocar::energy
