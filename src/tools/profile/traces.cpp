#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.h"
#include "tools/profile/files.h"
#include "util/text.h"

namespace trocar::profiles {

namespace {

constexpr std::size_t most_runs = 50;  // in a trace: viewers slow down long before files end
constexpr const char* rest = "unattributed";

Json object(std::initializer_list<JsonMember> members) {
    return Json::object(Json::Order::given, members);
}

Json event(const std::string& name, const char* category, double start_ns, double spent_ns) {
    return object({{"name", name},
                   {"cat", category},
                   {"ph", "X"},
                   {"ts", start_ns / 1000},
                   {"dur", spent_ns / 1000},
                   {"pid", 1},
                   {"tid", 1}});
}

// A module is open from the begin of its first part to the end of its last, as long as no part of
// another module comes between.
class ModuleSpans {
public:
    explicit ModuleSpans(Json& events) : events_(events) {}

    void part(const std::vector<std::string>& modules, double start, double end) {
        std::size_t same = 0;
        while (same < open_.size() && same < modules.size() && open_[same].name == modules[same]) {
            ++same;
        }
        close(same);
        for (std::size_t i = same; i < modules.size(); ++i) {
            open_.push_back({modules[i], start, end});
        }
        for (auto& module : open_) {
            module.end = end;
        }
    }
    void close(std::size_t down_to) {
        while (open_.size() > down_to) {
            const auto& module = open_.back();
            events_.push_back(
                event(module.name, "module", module.start, module.end - module.start));
            open_.pop_back();
        }
    }

private:
    struct Open {
        std::string name;
        double start;
        double end;
    };
    Json& events_;
    std::vector<Open> open_;
};

void add_run(const Profile& profile, std::size_t run, Json& events) {
    const auto begin = profile.begin_ns[run];
    events.push_back(event(fmt::format("run {}", run), "run", begin, profile.wall_ns[run]));
    ModuleSpans modules(events);
    for (std::size_t i = 0; i < profile.parts.size(); ++i) {
        const auto& part = profile.parts[i];
        if (part.inside != ProfilePart::none) {
            continue;  // its calls may be many, and only their sum is kept
        }
        const auto start = begin + part.start_ns[run];
        auto stack = stack_of(profile, i);
        const auto label = stack.back();
        stack.pop_back();
        modules.part(stack, start, start + part.total_ns[run]);
        auto entry = event(label, "op", start, part.total_ns[run]);
        entry["args"] = object({{"name", part.name}, {"type", part.type}});
        events.push_back(std::move(entry));
    }
    modules.close(0);
}

}  // namespace

std::string chrome_trace(const Profile& profile, const std::string& title) {
    auto events = Json::array();
    events.push_back(object(
        {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", object({{"name", title}})}}));
    for (std::size_t run = 0; run < std::min(profile.wall_ns.size(), most_runs); ++run) {
        add_run(profile, run, events);
    }
    auto file = object({{"displayTimeUnit", "ms"}});
    file["traceEvents"] = std::move(events);
    return file.dump() + "\n";
}

std::string folded_stacks(const Profile& profile) {
    const auto runs = typical_runs(profile);
    std::string text;
    const auto add = [&](const std::vector<std::string>& stack, double ns) {
        std::vector<std::string> frames;
        for (auto frame : stack) {
            std::replace(frame.begin(), frame.end(), ';', ':');
            std::replace(frame.begin(), frame.end(), '\n', ' ');
            frames.push_back(std::move(frame));
        }
        text += fmt::format("{} {}\n", join(frames, ";"), std::llround(std::max(0.0, ns)));
    };
    for (std::size_t i = 0; i < profile.parts.size(); ++i) {
        add(stack_of(profile, i), typical(profile.parts[i].self_ns, runs));
    }
    add({rest}, unattributed(profile, runs));
    return text;
}

std::string speedscope(const Profile& profile, const std::string& title) {
    const auto runs = typical_runs(profile);
    auto frames = Json::array();
    std::map<std::string, std::size_t> numbers;
    const auto frame = [&](const std::string& name) {
        const auto [found, fresh] = numbers.try_emplace(name, numbers.size());
        if (fresh) {
            frames.push_back(object({{"name", name}}));
        }
        return found->second;
    };
    auto samples = Json::array();
    auto weights = Json::array();
    double sum = 0;
    const auto add = [&](const std::vector<std::string>& stack, double ns) {
        auto sample = Json::array();
        for (const auto& name : stack) {
            sample.push_back(frame(name));
        }
        samples.push_back(std::move(sample));
        weights.push_back(std::max(0.0, ns));
        sum += std::max(0.0, ns);
    };
    for (std::size_t i = 0; i < profile.parts.size(); ++i) {
        add(stack_of(profile, i), typical(profile.parts[i].self_ns, runs));
    }
    add({rest}, unattributed(profile, runs));
    auto file = object({{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                        {"name", title},
                        {"exporter", "trocar"},
                        {"shared", object({})}});
    file["shared"]["frames"] = std::move(frames);
    auto& sampled = file["profiles"].push_back(object({{"type", "sampled"},
                                                       {"name", title},
                                                       {"unit", "nanoseconds"},
                                                       {"startValue", 0},
                                                       {"endValue", sum}}));
    sampled["samples"] = std::move(samples);
    sampled["weights"] = std::move(weights);
    return file.dump() + "\n";
}

}  // namespace trocar::profiles
