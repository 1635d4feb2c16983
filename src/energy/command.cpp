#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/process.h"
#include "energy/reader.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::energy {

namespace {

constexpr double counts_per_joule = 1e6;
constexpr double most_joules = 1e12;

struct Unit {
    std::string_view name;
    double factor;  // to joules or watts
    bool energy;
};
constexpr std::array<Unit, 10> units{{{"J", 1, true},
                                      {"mJ", 1e-3, true},
                                      {"uJ", 1e-6, true},
                                      {"kJ", 1e3, true},
                                      {"Wh", 3600, true},
                                      {"kWh", 3.6e6, true},
                                      {"W", 1, false},
                                      {"mW", 1e-3, false},
                                      {"uW", 1e-6, false},
                                      {"kW", 1e3, false}}};

struct Said {
    double number = 0;      // joules or watts
    double resolution = 0;  // of its last digit
    bool energy = false;
    std::string failed;
};

std::string how_it_ended(const ProcessEnd& end, double limit) {
    switch (end.how) {
        case ProcessEnd::How::timed_out:
            return fmt::format("took longer than {:.3g} s", limit);
        case ProcessEnd::How::signalled:
            return fmt::format("was ended by {}", signal_name(end.code));
        case ProcessEnd::How::exited:
            return end.code == 0 ? "" : fmt::format("ended with {}", end.code);
        default:
            return "was ended";
    }
}

// 0.1 of "12.5", 0.001 of "1.25e-1".
double last_digit(std::string_view number) {
    const auto exponent_at = std::min(number.find_first_of("eE"), number.size());
    const auto point = std::min(number.find('.'), exponent_at);
    const auto decimals = point < exponent_at ? exponent_at - point - 1 : 0;
    const auto exponent =
        exponent_at < number.size() ? number_in(number.substr(exponent_at + 1)).value_or(0) : 0;
    return std::pow(10.0, exponent - static_cast<double>(decimals));
}

// "12.5 J": the last line that it wrote.
Said said_in(std::string_view words) {
    words = trim(words);
    const auto line = trim(words.substr(words.rfind('\n') + 1));
    const auto blank = line.find_last_of(" \t");
    Said said;
    if (blank != std::string_view::npos) {
        const auto number = number_in(line.substr(0, blank));
        const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& one) {
            return one.name == line.substr(blank + 1);
        });
        if (number && *number >= 0 && unit != units.end()) {
            said.number = *number * unit->factor;
            said.resolution = last_digit(line.substr(0, blank)) * unit->factor;
            said.energy = unit->energy;
            return said;
        }
    }
    said.failed = fmt::format(
        "wrote '{}', which is not a number with a unit such as '12.5 J' or "
        "'30 W'",
        line.substr(0, 60));
    return said;
}

Said ask(const std::string& command, double limit) {
    Said said;
    try {
        ProcessLimits limits;
        limits.time = std::chrono::milliseconds(std::max(1L, std::lround(limit * 1000)));
        const auto end = run_command(command, limits);
        said.failed = how_it_ended(end, limit);
        if (said.failed.empty()) {
            said = said_in(end.last_words);
        }
    } catch (const Error& error) {
        said.failed = fmt::format("was not run: {}", error.what());
    }
    if (!said.failed.empty()) {
        said.failed = fmt::format("the command '{}' {}", command, said.failed);
    }
    return said;
}

class CommandReader final : public Reader {
public:
    CommandReader(std::string command, double limit, bool energy)
        : command_(std::move(command)), limit_(limit), energy_(energy) {}

    Value read(std::size_t /*channel*/) override {
        Value value;
        const auto said = ask(command_, limit_);
        value.failed = said.failed;
        if (!said.failed.empty()) {
            return value;
        }
        if (said.energy != energy_) {
            value.failed = fmt::format("the command '{}' changed from {}", command_,
                                       energy_ ? "energy to power" : "power to energy");
        } else if (energy_) {
            value.count =
                static_cast<std::uint64_t>(std::min(said.number, most_joules) * counts_per_joule);
            value.failed = said.number > most_joules ? "the command counts too many joules" : "";
        } else {
            value.watts = said.number;
        }
        return value;
    }

private:
    std::string command_;
    double limit_;
    bool energy_;
};

}  // namespace

Found find_command(const EnergyOptions& options) {
    const auto& command = options.choice.argument;
    const auto first = ask(command, options.command_seconds);
    if (!first.failed.empty()) {
        return unavailable("command", first.failed,
                           "It must print the joules counted so far, or the watts now, as its last "
                           "line.");
    }
    Found found;
    found.source.name = "command";
    found.source.label = first.energy ? EnergyLabel::measured : EnergyLabel::integrated;
    found.probe = false;
    found.sample_seconds = std::max(1.0, options.sample_seconds);
    Channel channel;
    channel.domain.name = command;
    channel.unit = 1 / counts_per_joule;
    channel.resolution = first.resolution;
    if (!first.energy) {
        found.source.resolution = first.resolution;
    }
    found.channels.push_back(std::move(channel));
    found.reader = std::make_unique<CommandReader>(command, options.command_seconds, first.energy);
    return found;
}

}  // namespace trocar::energy
