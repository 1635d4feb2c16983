#include "inject/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trocar/error.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar::inject {

namespace {

using Kind = Decision::Kind;

bool is_complex(DType dtype) {
    return dtype == DType::c64 || dtype == DType::c128;
}

bool has_numbers(const Value& value) {
    return value.is_tensor() && is_numeric(value.dtype()) && !is_complex(value.dtype());
}

template <class T>
std::optional<T> number_in(std::string_view text) {
    T number{};
    const auto* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, number);
    return failure == std::errc() && stop == end && !text.empty() ? std::optional(number)
                                                                  : std::nullopt;
}

// By its name, else by its index.
std::optional<std::size_t> find(const std::vector<NamedValue>& outputs, std::string_view which) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].name == which) {
            return i;
        }
    }
    const auto index = number_in<std::size_t>(which);
    return index && *index < outputs.size() ? index : std::nullopt;
}

[[noreturn]] void refuse_output(const std::vector<NamedValue>& outputs, std::string_view which) {
    std::vector<std::string> names;
    std::string list;
    for (const auto& output : outputs) {
        names.push_back(output.name);
        list += fmt::format("{}'{}'", list.empty() ? "" : ", ", output.name);
    }
    const auto near = did_you_mean(which, names);
    throw Error(Fault::usage, fmt::format("there is no output '{}' to decide by", which),
                fmt::format("{}{}{}", near, near.empty() ? "" : " ",
                            outputs.size() == 1
                                ? "the output is " + list
                                : fmt::format("the outputs are {}; or use an index", list)));
}

// The first output that a decision without a name may be about.
std::size_t first_fit(const Decision& decision, const std::vector<NamedValue>& outputs,
                      const std::vector<NamedValue>& inputs) {
    const auto first = [&](const auto& fits) -> std::optional<std::size_t> {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (has_numbers(outputs[i].value) && fits(outputs[i].value)) {
                return i;
            }
        }
        return std::nullopt;
    };
    const bool scored = decision.kind == Kind::scores || decision.kind == Kind::topk;
    std::optional<std::size_t> found;
    switch (decision.kind) {
        case Kind::scores:
        case Kind::topk: {
            const auto best = automatic_rule(outputs, inputs);
            found = best.kind == Kind::scores
                        ? std::optional(best.output)
                        : first([&](const Value& value) {
                              const auto shape = value.shape();
                              return !shape.empty() && shape[class_axis(value, inputs)] > 1;
                          });
            break;
        }
        case Kind::equal: {
            const auto best = automatic_rule(outputs, inputs);
            found = best.kind == Kind::equal ? std::optional(best.output)
                                             : first([](const Value&) { return true; });
            break;
        }
        default:
            found = first([](const Value& value) { return is_float(value.dtype()); });
            found = found ? found : first([](const Value&) { return true; });
    }
    if (!found) {
        throw Error(Fault::usage, fmt::format("no output fits the decision '{}'", text(decision)),
                    scored
                        ? "scores need an output with at least 2 of them; use error:LIMIT or none"
                        : "use --decision none");
    }
    return *found;
}

// The axis that was asked for, counted from the end where negative.
std::size_t axis_of(const NamedValue& output, std::int64_t axis) {
    const auto rank = static_cast<std::int64_t>(output.value.shape().size());
    if (axis < -rank || axis >= rank) {
        throw Error(Fault::usage,
                    fmt::format("axis {} is out of range for output '{}', which is {}", axis,
                                output.name, value_text(output.value)),
                    rank == 0 ? std::string("use error:LIMIT or none")
                              : fmt::format("use {} to {}", -rank, rank - 1));
    }
    return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

void check_scores(const Rule& rule, const NamedValue& output) {
    const auto shape = output.value.shape();
    const auto classes = shape.empty() ? 1 : shape.at(rule.axis);
    if (classes < 2) {
        throw Error(
            Fault::usage,
            fmt::format("output '{}' has {} along axis {}: scores need at least 2", output.name,
                        counted(static_cast<std::size_t>(classes), "element"), rule.axis),
            "name another output or axis, or use error:LIMIT");
    }
    if (rule.kind == Kind::topk && rule.k >= classes) {
        throw Error(Fault::usage,
                    fmt::format("topk:{} never changes for output '{}', which has {} classes "
                                "along axis {}",
                                rule.k, output.name, classes, rule.axis),
                    fmt::format("use a K from 1 to {}", classes - 1));
    }
}

}  // namespace

Rule bound(const Decision& decision, const std::vector<NamedValue>& outputs,
           const std::vector<NamedValue>& inputs) {
    if (decision.kind == Kind::automatic) {
        return automatic_rule(outputs, inputs);
    }
    Rule rule;
    rule.kind = decision.kind;
    rule.k = decision.k;
    rule.limit = decision.limit;
    if (rule.kind == Kind::none) {
        return rule;
    }
    const bool scores = rule.kind == Kind::scores || rule.kind == Kind::topk;
    std::string_view which = decision.output;
    auto found =
        which.empty() ? std::optional(first_fit(decision, outputs, inputs)) : find(outputs, which);
    std::optional<std::int64_t> axis;
    if (const auto colon = which.rfind(':'); !found && scores && colon != which.npos) {
        // A name may have colons, too: only what is not a name as a whole ends with an axis.
        axis = number_in<std::int64_t>(which.substr(colon + 1));
        if (!axis) {
            const auto name = which.substr(0, colon);
            if (!name.empty() && !find(outputs, name)) {
                refuse_output(outputs, which);
            }
            throw Error(Fault::usage, fmt::format("'{}' is not an axis", which.substr(colon + 1)),
                        "use a number, as in scores:logits:1; negative ones count from the end");
        }
        which = which.substr(0, colon);
        found = which.empty() ? std::optional(first_fit(decision, outputs, inputs))
                              : find(outputs, which);
    }
    if (!found) {
        refuse_output(outputs, which);
    }
    const auto& output = outputs[*found];
    rule.output = *found;
    rule.name = output.name;
    if (!has_numbers(output.value)) {
        throw Error(Fault::usage,
                    fmt::format("output '{}' is {}: decisions are taken from tensors of numbers",
                                output.name, value_text(output.value)),
                    "name another output, or use --postprocess");
    }
    if (scores) {
        rule.axis = axis                           ? axis_of(output, *axis)
                    : output.value.shape().empty() ? 0
                                                   : class_axis(output.value, inputs);
        check_scores(rule, output);
    }
    return rule;
}

ChosenDecision chosen(const Rule& rule) {
    ChosenDecision made;
    auto& d = made.decision;
    d.kind = rule.kind;
    d.k = rule.k;
    d.limit = rule.limit;
    d.output = rule.name;
    switch (rule.kind) {
        case Kind::scores:
            d.output += fmt::format(":{}", rule.axis);
            made.meaning = fmt::format("scores of '{}' along axis {}", rule.name, rule.axis);
            break;
        case Kind::topk:
            d.output += fmt::format(":{}", rule.axis);
            made.meaning =
                fmt::format("golden first choice of '{}' along axis {} among the first {}",
                            rule.name, rule.axis, rule.k);
            break;
        case Kind::equal:
            made.meaning = fmt::format("equality of '{}'", rule.name);
            break;
        case Kind::error:
            made.meaning = fmt::format("absolute error of '{}' above {}", rule.name, rule.limit);
            break;
        default:
            made.meaning = "none" + (rule.because.empty() ? "" : ", " + rule.because);
            d.output.clear();
    }
    if (rule.automatic) {
        made.meaning += rule.kind == Kind::none ? " (--decision chooses one)"
                                                : " (chosen automatically; --decision changes it)";
    }
    return made;
}

namespace {

std::vector<double> numbers_of(const Value& value) {
    std::vector<double> numbers(value.element_count());
    decode(value.dtype(), value.bytes(), 0, numbers);
    return numbers;
}

// A tensor as positions, each of which has `classes` numbers.
struct Rows {
    Rows(const Value& value, std::size_t axis) : shape(value.shape()), numbers(numbers_of(value)) {
        classes = static_cast<std::size_t>(shape[axis]);
        for (auto i = axis + 1; i < shape.size(); ++i) {
            stride *= static_cast<std::size_t>(shape[i]);
        }
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
        count = trocar::element_count(shape);
    }
    // The numbers of a position stand `stride` apart.
    const double* row(std::size_t position) const {
        return numbers.data() + position / stride * classes * stride + position % stride;
    }
    // Earlier ones first among equals; -1: a NaN leaves it undecided.
    std::int64_t top(std::size_t position) const {
        const auto* x = row(position);
        std::size_t best = 0;
        for (std::size_t i = 0; i < classes; ++i) {
            if (std::isnan(x[i * stride])) {
                return -1;
            }
            best = x[i * stride] > x[best * stride] ? i : best;
        }
        return static_cast<std::int64_t>(best);
    }
    // How many come before this one; all, where a NaN leaves it undecided.
    std::size_t rank(std::size_t position, std::size_t which) const {
        const auto* x = row(position);
        const auto own = x[which * stride];
        std::size_t before = 0;
        for (std::size_t i = 0; i < classes; ++i) {
            const auto one = x[i * stride];
            if (std::isnan(one)) {
                return classes;
            }
            before += one > own || (one == own && i < which) ? 1 : 0;
        }
        return before;
    }

    Shape shape;  // of the positions
    std::vector<double> numbers;
    std::size_t classes = 0;
    std::size_t stride = 1;
    std::size_t count = 0;  // positions
};

std::array<std::int64_t, 5> first_five(const Rows& rows, std::size_t position) {
    std::array<std::int64_t, 5> five{-1, -1, -1, -1, -1};
    const auto* row = rows.row(position);
    for (std::size_t i = 0; i < rows.classes; ++i) {
        const auto x = row[i * rows.stride];
        auto at = five.size();
        while (at > 0 && (five[at - 1] < 0 ||
                          x > row[static_cast<std::size_t>(five[at - 1]) * rows.stride])) {
            --at;
        }
        if (at < five.size()) {
            std::copy_backward(five.begin() + static_cast<std::ptrdiff_t>(at), five.end() - 1,
                               five.end());
            five[at] = static_cast<std::int64_t>(i);
        }
    }
    return five;
}

// Elements as they are: 64-bit integers are not rounded.
class Elements64 {
public:
    explicit Elements64(const Value& value) : dtype_(value.dtype()) {
        if (dtype_ == DType::i64 || dtype_ == DType::u64) {
            wide_.resize(value.element_count());
            const auto bytes = value.bytes();
            std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(wide_.data()));
        } else {
            numbers_ = numbers_of(value);
        }
    }
    // The number where it is a class; else -1.
    std::int64_t id(std::size_t i) const {
        if (!wide_.empty()) {
            return std::max<std::int64_t>(-1, static_cast<std::int64_t>(wide_[i]));
        }
        const auto x = numbers_[i];
        constexpr double most = 9007199254740992.0;
        return x >= 0 && x < most && x == std::floor(x) ? static_cast<std::int64_t>(x) : -1;
    }
    // The absolute difference; infinite where one of them is NaN, or infinities differ.
    double off(std::size_t i, const Elements64& other, std::size_t j) const {
        if (dtype_ == DType::i64 || dtype_ == DType::u64) {
            const auto a = wide_[i];
            const auto b = other.wide_[j];
            const bool less = dtype_ == DType::u64
                                  ? a < b
                                  : static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
            return static_cast<double>(less ? b - a : a - b);
        }
        const auto a = numbers_[i];
        const auto b = other.numbers_[j];
        if (a == b || (std::isnan(a) && std::isnan(b))) {
            return 0;
        }
        const auto d = std::abs(a - b);
        return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
    }

private:
    DType dtype_;
    std::vector<std::uint64_t> wide_;
    std::vector<double> numbers_;
};

// Positions that are there in both, by their numbers in each; how many there are in either, and in
// one alone. Where shapes differ along one axis, what has the same indices is compared; where they
// differ otherwise, nothing is.
struct Positions {
    std::uint64_t all = 0;
    std::uint64_t unmatched = 0;
};

template <class F>
Positions pair_up(const Shape& golden, const Shape& faulty, const F& compare) {
    std::size_t differing = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < std::min(golden.size(), faulty.size()); ++i) {
        if (golden[i] != faulty[i]) {
            ++differing;
            where = i;
        }
    }
    const auto in_golden = element_count(golden);
    const auto in_faulty = element_count(faulty);
    if (golden.size() != faulty.size() || differing > 1) {
        const auto all = std::max(in_golden, in_faulty);
        return {all, all};
    }
    if (differing == 0) {
        for (std::size_t i = 0; i < in_golden; ++i) {
            compare(i, i);
        }
        return {in_golden, 0};
    }
    std::size_t outer = 1;
    std::size_t inner = 1;
    for (std::size_t i = 0; i < golden.size(); ++i) {
        (i < where ? outer : inner) *= i == where ? 1 : static_cast<std::size_t>(golden[i]);
    }
    const auto a = static_cast<std::size_t>(golden[where]);
    const auto b = static_cast<std::size_t>(faulty[where]);
    for (std::size_t o = 0; o < outer; ++o) {
        for (std::size_t i = 0; i < std::min(a, b) * inner; ++i) {
            compare(o * a * inner + i, o * b * inner + i);
        }
    }
    return {outer * std::max(a, b) * inner, outer * (std::max(a, b) - std::min(a, b)) * inner};
}

void compare_scores(const Rule& rule, const Choices& choices, const Value& golden,
                    const Value& faulty, TrialResult& result) {
    const Rows rows(faulty, rule.axis);
    auto shape = golden.shape();
    const auto classes = static_cast<std::size_t>(shape[rule.axis]);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(rule.axis));
    if (rows.count > 0 && rows.classes > 0) {
        result.faulty_top = rows.top(0);
    }
    const bool scores = rule.kind == Kind::scores;
    if (classes != rows.classes) {
        result.positions = result.changed = std::max(choices.positions, std::uint64_t{rows.count});
        result.sdc1 = true;
        result.sdc5 = result.sdc10 = result.sdc20 = scores;
        return;
    }
    if (classes == 0) {  // nothing to choose from
        result.sdc1 = shape != rows.shape;
        return;
    }
    const auto [all, unmatched] = pair_up(shape, rows.shape, [&](std::size_t g, std::size_t f) {
        const auto before = choices.tops[g];
        if (!scores) {
            const bool out = before < 0 ? rows.top(f) >= 0
                                        : rows.rank(f, static_cast<std::size_t>(before)) >=
                                              static_cast<std::size_t>(rule.k);
            result.changed += out ? 1 : 0;
            return;
        }
        const auto after = rows.top(f);
        result.changed += before != after ? 1 : 0;
        if (before < 0 && after < 0) {
            return;  // as undecided as it was
        }
        const auto& five = choices.five[g];
        result.sdc5 =
            result.sdc5 || std::find(five.begin(), five.end(), after) == five.end() || after < 0;
        // The score of what the golden run chose, then and now.
        const auto was = choices.scores[g];
        const auto is =
            before < 0 ? std::nan("") : rows.row(f)[static_cast<std::size_t>(before) * rows.stride];
        const auto off = is == was ? 0 : std::abs(is - was) / std::abs(was);
        result.sdc10 = result.sdc10 || !(off <= 0.1);
        result.sdc20 = result.sdc20 || !(off <= 0.2);
    });
    const bool reshaped = shape != rows.shape;
    result.positions = all;
    result.changed += unmatched;
    result.sdc1 = result.changed > 0 || reshaped;
    if (reshaped && scores) {
        result.sdc5 = result.sdc10 = result.sdc20 = true;
    }
}

void compare_elements(const Rule& rule, const Value& golden, const Value& faulty,
                      TrialResult& result) {
    const Elements64 before(golden);
    const Elements64 after(faulty);
    if (rule.kind == Kind::equal && faulty.element_count() > 0) {
        result.faulty_top = after.id(0);
    }
    const auto limit = rule.kind == Kind::equal ? 0 : rule.limit;
    const auto [all, unmatched] =
        pair_up(golden.shape(), faulty.shape(), [&](std::size_t g, std::size_t f) {
            result.changed += before.off(g, after, f) > limit ? 1 : 0;
        });
    result.positions = all;
    result.changed += unmatched;
    result.sdc1 = result.changed > 0 || golden.shape() != faulty.shape();
}

}  // namespace

Choices choices(const Rule& rule, const std::vector<NamedValue>& outputs) {
    Choices made;
    if (rule.kind == Kind::none) {
        return made;
    }
    const auto& output = outputs.at(rule.output);
    const auto& value = output.value;
    const bool scores = rule.kind == Kind::scores || rule.kind == Kind::topk;
    if (!has_numbers(value) || (scores && rule.axis >= value.shape().size())) {
        throw Error(Fault::input,
                    fmt::format("output '{}' is {} for an input: it cannot be judged by {}",
                                output.name, value_text(value), chosen(rule).meaning),
                    "use --decision to choose another decision");
    }
    if (!scores) {
        made.positions = value.element_count();
        if (rule.kind == Kind::equal && made.positions > 0) {
            made.top = Elements64(value).id(0);
        }
        return made;
    }
    const Rows rows(value, rule.axis);
    made.positions = rows.classes > 0 ? rows.count : 0;
    for (std::size_t p = 0; p < made.positions; ++p) {
        const auto top = rows.top(p);
        made.tops.push_back(top);
        if (rule.kind == Kind::scores) {
            made.five.push_back(top < 0 ? std::array<std::int64_t, 5>{-1, -1, -1, -1, -1}
                                        : first_five(rows, p));
            made.scores.push_back(
                top < 0 ? std::nan("") : rows.row(p)[static_cast<std::size_t>(top) * rows.stride]);
        }
    }
    made.top = made.tops.empty() ? -1 : made.tops[0];
    return made;
}

void compare(const Rule& rule, const Choices& choices, const std::vector<NamedValue>& golden,
             const std::vector<NamedValue>& faulty, TrialResult& result) {
    if (rule.kind == Kind::none) {
        return;
    }
    const auto& before = golden.at(rule.output).value;
    const auto& after = faulty.at(rule.output).value;
    const bool scores = rule.kind == Kind::scores || rule.kind == Kind::topk;
    if (!after.is_tensor() || after.dtype() != before.dtype() ||
        (scores && rule.axis >= after.shape().size())) {
        result.positions = result.changed = choices.positions;
        result.sdc1 = true;
        result.sdc5 = result.sdc10 = result.sdc20 = rule.kind == Kind::scores;
    } else if (scores) {
        compare_scores(rule, choices, before, after, result);
    } else {
        compare_elements(rule, before, after, result);
    }
}

}  // namespace trocar::inject
