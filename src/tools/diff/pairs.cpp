#include "tools/diff/pairs.h"

#include <cmath>
#include <map>
#include <tuple>

namespace trocar::diff {

namespace {

using Key = std::tuple<std::string, std::uint64_t, std::vector<std::int64_t>, std::size_t>;

// Keys of records, in which those that are equal otherwise are counted.
class Keys {
public:
    Key of(const DumpRecord& record) {
        const auto& name = record.source_tensor.empty() ? record.tensor : record.source_tensor;
        Key key{name, record.set, record.iterations, 0};
        std::get<3>(key) = seen_[key]++;
        return key;
    }

private:
    std::map<Key, std::size_t> seen_;
};

bool close(double a, double b, double scale, const Tolerance& tolerance) {
    if (std::isnan(a) || std::isnan(b)) {
        return std::isnan(a) && std::isnan(b);
    }
    return a == b || std::abs(b - a) <= tolerance.atol + tolerance.rtol * scale;
}

// Statistics of tensors that are the same up to the tolerance cannot be further apart than this.
bool close(const Statistics& a, const Statistics& b, const Tolerance& tolerance) {
    if (a.count != b.count || a.nans != b.nans || a.positive_infinities != b.positive_infinities ||
        a.negative_infinities != b.negative_infinities) {
        return false;
    }
    const double scale = std::isnan(a.max_abs) ? 0 : a.max_abs;
    return close(a.min, b.min, scale, tolerance) && close(a.max, b.max, scale, tolerance) &&
           close(a.mean, b.mean, scale, tolerance) && close(a.std, b.std, scale, tolerance) &&
           close(a.rms, b.rms, scale, tolerance);
}

bool same_hash(const Pair& pair, const Dump& a, const Dump& b) {
    return a.hash_kind == b.hash_kind && !pair.a->hash.empty() && pair.a->hash == pair.b->hash;
}

bool known_to_differ(const Pair& pair, const Dump& a, const Dump& b) {
    return a.hash_kind == b.hash_kind && !pair.a->hash.empty() && !pair.b->hash.empty() &&
           pair.a->hash != pair.b->hash;
}

void compare_tensors(Pair& pair, const Dump& a, const Dump& b, const Tolerance& tolerance) {
    const auto left = load_tensor(a, *pair.a);
    const auto right = load_tensor(b, *pair.b);
    if (!has_statistics(left) || !has_statistics(right)) {
        return;  // strings and the like
    }
    pair.by = "tensors";
    pair.difference = difference(left, right, tolerance);
    pair.outcome = pair.difference->same_bits  ? Pair::Outcome::same_bits
                   : pair.difference->within() ? Pair::Outcome::within
                                               : Pair::Outcome::differs;
}

void compare_statistics(Pair& pair, const Dump& a, const Dump& b, const Tolerance& tolerance) {
    const bool exact = tolerance.rtol == 0 && tolerance.atol == 0;
    if (exact && known_to_differ(pair, a, b)) {
        pair.by = "hash";
        pair.outcome = Pair::Outcome::differs;
        return;
    }
    if (pair.a->statistics && pair.b->statistics) {
        pair.by = "statistics";
        pair.outcome = close(*pair.a->statistics, *pair.b->statistics, tolerance)
                           ? Pair::Outcome::within
                           : Pair::Outcome::differs;
    }
}

}  // namespace

Matched match(const Dump& a, const Dump& b) {
    std::map<Key, const DumpRecord*> others;
    Keys keys_of_b;
    for (const auto& record : b.records) {
        others.emplace(keys_of_b.of(record), &record);
    }
    Matched matched;
    Keys keys_of_a;
    for (const auto& record : a.records) {
        const auto found = others.find(keys_of_a.of(record));
        if (found == others.end()) {
            matched.missing.push_back(&record);
        } else {
            auto& pair = matched.pairs.emplace_back();
            pair.a = &record;
            pair.b = found->second;
            found->second = nullptr;
        }
    }
    Keys again;
    for (const auto& record : b.records) {
        if (others[again.of(record)] != nullptr) {
            matched.extra.push_back(&record);
        }
    }
    return matched;
}

void compare(Pair& pair, const Dump& a, const Dump& b, const Tolerance& tolerance) {
    if (pair.a->kind != pair.b->kind || pair.a->dtype != pair.b->dtype) {
        pair.outcome = Pair::Outcome::other_type;
    } else if (pair.a->shape != pair.b->shape) {
        pair.outcome = Pair::Outcome::other_shape;
    } else if (same_hash(pair, a, b)) {
        pair.by = "hash";
        pair.outcome = Pair::Outcome::same_bits;
    } else if (!pair.a->file.empty() && !pair.b->file.empty() && pair.a->kind == "tensor") {
        compare_tensors(pair, a, b, tolerance);
    } else {
        compare_statistics(pair, a, b, tolerance);
    }
}

double badness(const Pair& pair) {
    switch (pair.outcome) {
        case Pair::Outcome::other_type:
        case Pair::Outcome::other_shape:
            return 1e9;
        case Pair::Outcome::same_bits:
        case Pair::Outcome::incomparable:
            return -1e9;
        default:
            break;
    }
    if (!pair.difference) {
        return pair.agrees() ? -1e8 : 1e6;
    }
    const auto& d = *pair.difference;
    if (d.nan_mismatches + d.infinity_mismatches > 0) {
        return 1e8;
    }
    return std::isfinite(d.sqnr_db) ? -d.sqnr_db : -1e8;
}

const char* outcome_text(Pair::Outcome outcome) {
    switch (outcome) {
        case Pair::Outcome::same_bits:
            return "same bits";
        case Pair::Outcome::within:
            return "within";
        case Pair::Outcome::differs:
            return "differs";
        case Pair::Outcome::other_type:
            return "other type";
        case Pair::Outcome::other_shape:
            return "other shape";
        default:
            return "unknown";
    }
}

}  // namespace trocar::diff
