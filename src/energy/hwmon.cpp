#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>

#include "energy/reader.h"
#include "util/text.h"

namespace trocar::energy {

namespace {

namespace fs = std::filesystem;

constexpr double micro = 1e-6;
constexpr double milli = 1e-3;

struct Sensor {
    std::string chip;
    std::string name;  // "ina3221/VDD_IN"
    bool energy = false;
    fs::path file;              // energy in µJ, power in µW, or a current in mA…
    fs::path voltage;           // …with its voltage in mV
    double update_seconds = 0;  // of the chip; 0: it does not say
};

std::string failure(const fs::path& path, int error) {
    return fmt::format("'{}' could not be read: {}", path.string(),
                       error != 0 ? std::strerror(error) : "it holds no number");
}

class HwmonReader final : public Reader {
public:
    HwmonReader(std::vector<Sensor> sensors, const Surroundings& machine)
        : sensors_(std::move(sensors)), machine_(machine) {}

    Value read(std::size_t channel) override {
        Value value;
        const auto& sensor = sensors_[channel];
        const auto file = machine_.read_file(sensor.file);
        if (sensor.energy) {
            const auto count = file.error == 0 ? count_in(file.text) : std::nullopt;
            value.count = count.value_or(0);
            value.failed = count ? "" : failure(sensor.file, file.error);
            return value;
        }
        const auto number = file.error == 0 ? number_in(file.text) : std::nullopt;
        if (!number) {
            value.failed = failure(sensor.file, file.error);
        } else if (sensor.voltage.empty()) {
            value.watts = *number * micro;
        } else {
            const auto volts = machine_.read_file(sensor.voltage);
            const auto millivolts = volts.error == 0 ? number_in(volts.text) : std::nullopt;
            value.watts = *number * milli * millivolts.value_or(0) * milli;
            value.failed = millivolts ? "" : failure(sensor.voltage, volts.error);
        }
        return value;
    }

private:
    std::vector<Sensor> sensors_;
    Surroundings machine_;
};

// The numbers N of files KIND N SUFFIX in a folder: 1 of "power1_input".
std::set<unsigned> numbered(const fs::path& folder, std::string_view kind,
                            std::string_view suffix) {
    std::set<unsigned> numbers;
    std::error_code error;
    for (fs::directory_iterator entries(folder, error), end; !error && entries != end;
         entries.increment(error)) {
        const auto file = entries->path().filename().string();
        if (file.size() <= kind.size() + suffix.size() || !file.starts_with(kind) ||
            !file.ends_with(suffix)) {
            continue;
        }
        const auto number = count_in(
            std::string_view(file).substr(kind.size(), file.size() - kind.size() - suffix.size()));
        if (number && *number < 10000) {
            numbers.insert(static_cast<unsigned>(*number));
        }
    }
    return numbers;
}

// Energy before power before current and voltage, each thing once.
void add_chip(const fs::path& folder, const Surroundings& machine, std::vector<Sensor>& sensors) {
    Sensor blank;
    blank.chip = word_in(machine, folder / "name").value_or(folder.filename().string());
    blank.update_seconds =
        number_in(word_in(machine, folder / "update_interval").value_or("")).value_or(0) * milli;
    const auto add = [&](const std::string& kind, unsigned number, const std::string& suffix) {
        auto sensor = blank;
        const auto stem = fmt::format("{}{}", kind, number);
        const auto label = word_in(machine, folder / (stem + "_label"));
        sensor.name = fmt::format("{}/{}", blank.chip, label ? *label : stem);
        sensor.energy = kind == "energy";
        sensor.file = folder / (stem + suffix);
        sensors.push_back(std::move(sensor));
    };
    for (const auto number : numbered(folder, "energy", "_input")) {
        add("energy", number, "_input");
    }
    const auto inputs = numbered(folder, "power", "_input");
    for (const auto number : inputs) {
        add("power", number, "_input");
    }
    for (const auto number : numbered(folder, "power", "_average")) {
        if (!inputs.contains(number)) {
            add("power", number, "_average");
        }
    }
    if (!inputs.empty()) {
        return;
    }
    const auto voltages = numbered(folder, "in", "_input");
    for (const auto number : numbered(folder, "curr", "_input")) {
        if (voltages.contains(number)) {
            add("in", number, "_input");  // rails have their name as label of the voltage
            sensors.back().voltage = sensors.back().file;
            sensors.back().file = folder / fmt::format("curr{}_input", number);
        }
    }
}

// Sensors of all that a machine takes: ACPI's meter, Jetson's and similar boards' supply rail, a
// power supply's sum.
bool whole_machine(const Sensor& sensor) {
    const auto label = sensor.name.substr(sensor.chip.size() + 1);
    return sensor.chip == "power_meter" || label == "VDD_IN" || label == "POM_5V_IN" ||
           label == "power total";
}

// The driver amd_energy: sockets hold their cores.
bool socket(const Sensor& sensor) {
    return sensor.energy && sensor.name.find("/Esocket") != std::string::npos;
}

std::vector<Sensor> those(const std::vector<Sensor>& all, bool (*chosen)(const Sensor&)) {
    std::vector<Sensor> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some), chosen);
    return some;
}

std::string names_of(const std::vector<Sensor>& sensors) {
    std::string names;
    for (const auto& sensor : sensors) {
        names += (names.empty() ? "" : ", ") + sensor.name;
    }
    return names;
}

std::vector<Sensor> named(const std::vector<Sensor>& all, const std::string& list) {
    std::vector<Sensor> some;
    for (const auto& word : split(list, ',')) {
        const auto name = trim(word);
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const Sensor& sensor) { return sensor.name == name; });
        if (found == all.end()) {
            return {};
        }
        some.push_back(*found);
    }
    return some;
}

}  // namespace

Found find_hwmon(const EnergyOptions& options, const Surroundings& machine) {
    const auto root = options.sysfs / "class/hwmon";
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator entries(root, error), end; !error && entries != end;
         entries.increment(error)) {
        folders.push_back(entries->path());
    }
    std::sort(folders.begin(), folders.end());
    std::vector<Sensor> all;
    for (const auto& folder : folders) {
        add_chip(folder, machine, all);
    }
    if (all.empty()) {
        return unavailable("hwmon", "no sensor of this machine measures power or energy",
                           "An outside meter can be used by log:FILE or command:COMMAND.");
    }
    const bool chosen = options.choice.source == "hwmon";
    std::vector<Sensor> summed;
    if (chosen && !options.choice.argument.empty()) {
        summed = named(all, options.choice.argument);
        if (summed.empty()) {
            return unavailable("hwmon",
                               fmt::format("there is no sensor '{}'", options.choice.argument),
                               fmt::format("This machine has {}.", names_of(all)));
        }
    } else if (summed = those(all, whole_machine); !summed.empty()) {
        summed.resize(1);
    } else if (summed = those(all, socket); summed.empty() && chosen && all.size() == 1) {
        summed = all;
    }
    if (summed.empty()) {
        return unavailable("hwmon",
                           "its sensors may overlap, or measure a part of the machine only",
                           fmt::format("Name those to sum as hwmon:SENSOR,SENSOR; this machine has "
                                       "{}.",
                                       names_of(all)));
    }
    const bool energy = summed.front().energy;
    Found found;
    found.source.name = "hwmon";
    found.source.label = energy ? EnergyLabel::measured : EnergyLabel::integrated;
    found.sample_seconds = std::max(shortest_sample_seconds, options.sample_seconds);
    for (const auto& sensor : summed) {
        if (sensor.energy != energy) {
            return unavailable("hwmon", "some of these sensors count energy, others measure power",
                               "Name sensors of one kind.");
        }
        Channel channel;
        channel.domain.name = sensor.name;
        channel.unit = micro;
        found.channels.push_back(std::move(channel));
        found.lag_seconds = std::max(found.lag_seconds, sensor.update_seconds);
    }
    found.reader = std::make_unique<HwmonReader>(std::move(summed), machine);
    for (std::size_t i = 0; i < found.channels.size(); ++i) {
        if (auto first = found.reader->read(i); !first.failed.empty()) {
            return unavailable("hwmon", std::move(first.failed),
                               "Where the kernel keeps it from users, run as root.");
        }
    }
    return found;
}

}  // namespace trocar::energy
