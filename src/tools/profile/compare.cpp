#include "tools/profile/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/json.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/statistics.h"

namespace trocar::profiles {

namespace {

// Chances of 5 % that something differs where nothing does, over all rows together.
constexpr double significant = 0.05;

[[noreturn]] void refuse(const std::filesystem::path& file) {
    throw Error(Fault::input, fmt::format("'{}' is no profile of trocar", file.string()),
                "write one with `trocar profile MODEL --json > FILE` or --report FILE.json");
}

std::vector<double> read_samples(const Json& row) {
    std::vector<double> samples;
    const auto* found = row.find("samples_ns");
    if (found != nullptr && found->is_array()) {
        for (const auto& text : *found) {
            const auto number = dump_json(text);
            double value = 0;
            std::from_chars(number.data(), number.data() + number.size(), value);
            samples.push_back(value);
        }
    }
    return samples;
}

// Samples by name; of equal names the first, second… are told apart.
class Earlier {
public:
    explicit Earlier(const std::filesystem::path& file) {
        const auto report = Json::parse(read_file(file));
        if (!report || !report->is_object() || report->string_or("tool", "") != "profile" ||
            !report->contains("tables") || !report->at("tables").contains("samples")) {
            refuse(file);
        }
        for (const auto& row : report->at("tables").at("samples")) {
            const auto name = row.string_or("name", "");
            samples_[{name, counts_[name]++}] = read_samples(row);
            view_ = row.string_or("view", view_);
        }
    }

    const std::string& view() const { return view_; }
    const std::vector<double>* find(const std::string& name, std::size_t count) const {
        const auto found = samples_.find({name, count});
        return found == samples_.end() ? nullptr : &found->second;
    }
    std::size_t size() const { return samples_.size(); }

private:
    std::map<std::string, std::size_t> counts_;
    std::map<std::pair<std::string, std::size_t>, std::vector<double>> samples_;
    std::string view_;
};

struct Pair {
    std::string name;
    std::vector<double> before;
    std::vector<double> now;
};

std::vector<Pair> pair_up(const Profile& profile, const Earlier& earlier) {
    std::vector<Pair> pairs;
    std::map<std::string, std::size_t> counts;
    const auto add = [&](const std::string& name, const std::vector<double>& by_run) {
        if (const auto* before = earlier.find(name, counts[name]++)) {
            pairs.push_back(
                {name,
                 *before,
                 {by_run.begin() + static_cast<std::ptrdiff_t>(profile.steady), by_run.end()}});
        }
    };
    add("whole run", profile.wall_ns);
    for (const auto& part : profile.parts) {
        add(part.name, part.total_ns);
    }
    return pairs;
}

Table empty_table() {
    return {.key = "compare",
            .title = "Against the earlier profile",
            .columns = {{.key = "name", .title = "Part"},
                        {.key = "before_ns", .title = "Before", .show = Show::nanoseconds},
                        {.key = "now_ns", .title = "Now", .show = Show::nanoseconds},
                        {.key = "difference_ns", .title = "Difference", .show = Show::nanoseconds},
                        {.key = "ratio", .title = "Ratio", .show = Show::ratio},
                        {.key = "p_value", .title = "p", .optional = 1},
                        {.key = "verdict", .title = "Verdict"}},
            .rows = {},
            .note = {}};
}

}  // namespace

const char* view_name(View view) {
    return view == View::deployed ? "deployed" : "source";
}

std::vector<std::string> sample_texts(const std::vector<double>& by_run, std::size_t steady) {
    std::vector<std::string> texts;
    for (std::size_t run = steady; run < by_run.size(); ++run) {
        texts.push_back(fmt::format("{}", std::llround(by_run[run])));
    }
    return texts;
}

Table compare(const Profile& profile, const std::filesystem::path& file) {
    const Earlier earlier(file);
    if (earlier.view() != view_name(profile.view)) {
        throw Error(Fault::usage,
                    fmt::format("'{}' is of the {} view, this profile of the {} view",
                                file.string(), earlier.view(), view_name(profile.view)));
    }
    auto table = empty_table();
    const auto pairs = pair_up(profile, earlier);
    std::size_t different = 0;
    for (const auto& pair : pairs) {
        const auto before = spread(pair.before).median;
        const auto now = spread(pair.now).median;
        // Bonferroni: as strict as the number of rows demands.
        const double p = std::min(
            1.0, same_distribution(pair.before, pair.now) * static_cast<double>(pairs.size()));
        const bool differs = p < significant;
        different += differs ? 1 : 0;
        trocar::Row row;
        row.cells = {pair.name,
                     before,
                     now,
                     now - before,
                     before > 0 ? Cell(now / before) : Cell::unavailable("it took no time before"),
                     std::round(p * 1e4) / 1e4,
                     !differs       ? "same"
                     : now > before ? "slower"
                                    : "faster"};
        row.strong = table.rows.empty();
        table.rows.push_back(std::move(row));
    }
    std::stable_sort(table.rows.begin() + (table.rows.empty() ? 0 : 1), table.rows.end(),
                     [](const trocar::Row& a, const trocar::Row& b) {
                         return std::abs(std::get<double>(a.cells[3].value)) >
                                std::abs(std::get<double>(b.cells[3].value));
                     });
    table.note = fmt::format(
        "medians; {} of {} differ by more than chance (Mann-Whitney, p < {} over all rows); parts "
        "that only one profile has: {} before, {} now",
        different, pairs.size(), significant, earlier.size() - pairs.size(),
        profile.parts.size() + 1 - pairs.size());
    return table;
}

}  // namespace trocar::profiles
