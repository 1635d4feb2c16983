#include "store/rows.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

bool same_number(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

bool FaultRecord::operator==(const FaultRecord& other) const {
    return trial == other.trial && stratum == other.stratum && same_number(weight, other.weight) &&
           text == other.text && hash == other.hash && target == other.target &&
           layer == other.layer && tensor == other.tensor && effect == other.effect &&
           bit == other.bit && same_number(rate, other.rate);
}

namespace store {

namespace {

template <class T>
T read_number(const Database& database, const std::string& text, int base = 10) {
    T value{};
    const auto* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, value, base);
    if (failure != std::errc() || stop != end) {
        throw Error(Fault::input, fmt::format("the store '{}' is damaged: '{}' is no number",
                                              database.path().string(), text));
    }
    return value;
}

Shape read_shape(const Database& database, const std::string& text) {
    Shape shape;
    if (!text.empty()) {
        for (const auto& part : split(text, 'x')) {
            shape.push_back(read_number<std::int64_t>(database, part));
        }
    }
    return shape;
}

std::optional<bool> truth(const Statement& row, int place) {
    return row.is_null(place) ? std::nullopt : std::optional(row.integer(place) != 0);
}

std::int64_t place_of(const Statement& row, int place) {
    return row.is_null(place) ? -1 : row.integer(place);
}

}  // namespace

std::string shape_of(const Shape& shape) {
    return fmt::format("{}", join(shape, "x"));
}

Statement select_fault(const Database& database, const std::string& which) {
    return database.prepare(
        "SELECT trial, stratum, weight, fault, hash, target, layer, tensor, effect, bit, rate FROM "
        "faults " +
        which);
}

FaultRecord fault_of(const Statement& row) {
    FaultRecord fault;
    fault.trial = row.natural(0);
    fault.stratum = static_cast<std::uint32_t>(row.integer(1));
    fault.weight = row.number(2);
    fault.text = row.text(3);
    const auto hash = row.text(4);
    std::from_chars(hash.data(), hash.data() + hash.size(), fault.hash, 16);
    fault.target = row.text(5);
    fault.layer = row.text(6);
    fault.tensor = row.text(7);
    fault.effect = row.text(8);
    fault.bit = static_cast<int>(place_of(row, 9));
    fault.rate = row.number(10);
    return fault;
}

Statement select_result(const Database& database, const std::string& which) {
    return database.prepare(
        "SELECT trial, input, outcome, golden_top, faulty_top, sdc1, sdc5, sdc10, sdc20, "
        "golden_correct, faulty_correct, detected, max_abs, mean_abs, max_rel, sqnr_db, cosine, "
        "metric, failure, " +
        std::string(database.integer("PRAGMA user_version") < 3 ? "NULL, NULL"
                                                                : "positions, positions_changed") +
        " FROM results " + which);
}

TrialResult result_of(const Statement& row) {
    TrialResult result;
    result.trial = row.natural(0);
    result.input = row.natural(1);
    const auto outcome = parse_outcome(row.text(2));
    if (!outcome) {
        throw Error(Fault::input, fmt::format("the store is damaged: trial {} has the outcome '{}'",
                                              result.trial, row.text(2)));
    }
    result.outcome = *outcome;
    result.golden_top = place_of(row, 3);
    result.faulty_top = place_of(row, 4);
    result.sdc1 = row.integer(5) != 0;
    result.sdc5 = row.integer(6) != 0;
    result.sdc10 = row.integer(7) != 0;
    result.sdc20 = row.integer(8) != 0;
    result.golden_correct = truth(row, 9);
    result.faulty_correct = truth(row, 10);
    result.detected = row.integer(11) != 0;
    result.max_abs = row.number(12);
    result.mean_abs = row.number(13);
    result.max_rel = row.number(14);
    result.sqnr_db = row.number(15);
    result.cosine = row.number(16);
    result.metric = row.number(17);
    result.failure = row.text(18);
    result.positions = row.natural(19);
    result.changed = row.natural(20);
    return result;
}

bool has_metrics(const Database& database) {
    return database.integer("SELECT count(*) FROM sqlite_master WHERE name = 'metrics'") > 0 &&
           database.integer("SELECT EXISTS (SELECT 1 FROM metrics)") > 0;
}

Metrics read_metrics(const Database& database, std::uint64_t trial, std::uint64_t input) {
    auto row = database.prepare(
        "SELECT name, number FROM metrics WHERE trial = ? AND input = ? ORDER BY name");
    row.bind(0, trial).bind(1, input);
    Metrics metrics;
    while (row.step()) {
        metrics.emplace_back(row.text(0), row.number(1));
    }
    return metrics;
}

Statement select_effect(const Database& database, const std::string& which) {
    return database.prepare(
        "SELECT trial, input, tensor, op, changed, bad, max_abs FROM layer_effects " + which);
}

LayerEffect effect_of(const Statement& row) {
    LayerEffect effect;
    effect.trial = row.natural(0);
    effect.input = row.natural(1);
    effect.tensor = row.text(2);
    effect.op = row.text(3);
    effect.changed = row.natural(4);
    effect.bad = row.natural(5);
    effect.max_abs = row.number(6);
    return effect;
}

bool same_effect(const LayerEffect& a, const LayerEffect& b) {
    return a.trial == b.trial && a.input == b.input && a.tensor == b.tensor && a.op == b.op &&
           a.changed == b.changed && a.bad == b.bad && same_number(a.max_abs, b.max_abs);
}

Stratum read_stratum(const Database& database, std::uint64_t place) {
    auto row = database.prepare(
        "SELECT name, target, layer, bit, population, planned FROM strata WHERE stratum = ?");
    row.bind(0, place).step();
    Stratum stratum;
    stratum.name = row.text(0);
    stratum.target = row.text(1);
    stratum.layer = row.text(2);
    stratum.bit = static_cast<int>(place_of(row, 3));
    stratum.population = row.natural(4);
    stratum.planned = row.natural(5);
    return stratum;
}

std::optional<GoldenInput> read_golden(const Database& database, std::uint64_t input,
                                       bool outputs) {
    auto row = database.prepare("SELECT name, label, top, correct FROM golden WHERE input = ?");
    if (!row.bind(0, input).step()) {
        return std::nullopt;
    }
    GoldenInput golden;
    golden.input = input;
    golden.name = row.text(0);
    if (!row.is_null(1)) {
        golden.label = row.integer(1);
    }
    golden.top = place_of(row, 2);
    golden.correct = truth(row, 3);
    if (outputs) {
        golden.outputs = read_outputs(database, input);
    }
    return golden;
}

std::vector<GoldenOutput> read_outputs(const Database& database, std::uint64_t input) {
    auto row = database.prepare(
        "SELECT name, dtype, shape, bytes FROM golden_outputs WHERE input = ? ORDER BY place");
    row.bind(0, input);
    std::vector<GoldenOutput> outputs;
    while (row.step()) {
        auto& output = outputs.emplace_back();
        output.name = row.text(0);
        output.dtype = parse_dtype(row.text(1)).value_or(DType::undefined);
        output.shape = read_shape(database, row.text(2));
        const auto bytes = row.bytes(3);
        output.bytes.assign(bytes.begin(), bytes.end());
    }
    return outputs;
}

}  // namespace store

}  // namespace trocar
