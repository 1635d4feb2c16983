#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "inject/universe.h"
#include "trocar/error.h"
#include "trocar/random.h"
#include "util/text.h"

namespace trocar {

Importance parse_importance(std::string_view text) {
    const auto refuse = [&]() -> Importance {
        throw Error(Fault::usage, fmt::format("'{}' says nothing of importance", text),
                    "write bits:23-30=10 or layer:/conv1/*=5");
    };
    const auto equals = text.rfind('=');
    if (equals == std::string_view::npos) {
        return refuse();
    }
    Importance made;
    const auto number = text.substr(equals + 1);
    const auto [end, failure] =
        std::from_chars(number.data(), number.data() + number.size(), made.factor);
    if (failure != std::errc() || end != number.data() + number.size() ||
        !(made.factor > 0 && made.factor <= 1e9)) {
        return refuse();
    }
    const auto what = text.substr(0, equals);
    if (what.starts_with("bits:")) {
        made.bits = what.substr(5);
        parse_bits(made.bits, DType::f64);  // any floating-point type knows the names of parts
    } else if (what.starts_with("layer:")) {
        made.layers = what.substr(6);
    }
    return made.bits.empty() && made.layers.empty() ? refuse() : made;
}

}  // namespace trocar

namespace trocar::inject {

namespace {

// Does the type have that bit, and is it meant?
bool fits(const std::string& bits, DType dtype, unsigned bit) {
    try {
        return (parse_bits(bits, dtype) >> bit & 1) != 0;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

double Universe::factor(const Site& site, std::size_t choice) const {
    double factor = 1;
    for (const auto& entry : options_.sampling.importance) {
        const bool layer = entry.layers.empty() || glob_match(entry.layers, site.layer);
        const bool bit = entry.bits.empty() ||
                         (!site.bits.empty() && fits(entry.bits, site.dtype, site.bits[choice]));
        factor *= layer && bit ? entry.factor : 1;
    }
    return factor;
}

// Where faults of a stratum have different factors: what each adds up to.
void Universe::weigh() {
    const auto& sampling = options_.sampling;
    if (sampling.importance.empty()) {
        return;
    }
    if (sampling.exhaustive || !sweeps_.empty()) {
        throw Error(Fault::usage,
                    "importance says how often faults are drawn, and here all of them are tried",
                    "give a number of trials, or leave it out");
    }
    for (const auto& entry : sampling.importance) {
        const bool known = std::any_of(sites_.begin(), sites_.end(), [&](const Site& site) {
            return entry.layers.empty() || glob_match(entry.layers, site.layer);
        });
        if (!known) {
            throw Error(Fault::usage,
                        fmt::format("no layer with faults is named '{}'", entry.layers),
                        "`trocar inject plan … --per layer` lists them");
        }
    }
    classes_.resize(strata_.size());
    for (std::size_t stratum = 0; stratum < strata_.size(); ++stratum) {
        auto& classes = classes_[stratum];
        double upto = 0;
        for (const auto& member : members_[stratum]) {
            for (auto choice = member.first; choice < member.first + member.count; ++choice) {
                const auto one = factor(sites_[member.site], choice);
                upto += one * static_cast<double>(sites_[member.site].units);
                classes.push_back({member.site, choice, one, upto});
            }
        }
        const bool equal = std::all_of(classes.begin(), classes.end(), [&](const Class& c) {
            return c.factor == classes[0].factor;
        });
        if (equal) {
            classes.clear();  // drawn without replacement, as ever
        }
    }
}

void Universe::draw_weighted(Trial& trial, std::uint64_t key) const {
    const auto& classes = classes_[trial.stratum];
    const auto words = philox(options_.sampling.seed, 0x696d706f7274, trial.number);
    const auto all = classes.back().upto;
    const auto at = unit_double(words[0], words[1]) * all;
    auto chosen = std::upper_bound(classes.begin(), classes.end(), at,
                                   [](double x, const Class& c) { return x < c.upto; });
    chosen = chosen == classes.end() ? std::prev(chosen) : chosen;
    const auto& site = sites_[chosen->site];
    const auto unit = (std::uint64_t{words[2]} << 32 | words[3]) % site.units;
    trial.faults.push_back(fault(site, unit, chosen->choice, key));
    trial.weight = all / static_cast<double>(strata_[trial.stratum].population) / chosen->factor;
}

}  // namespace trocar::inject
