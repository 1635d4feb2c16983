#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "trocar/error.h"
#include "trocar/fault.h"
#include "trocar/random.h"

namespace trocar {

bool Duration::active(std::uint64_t run) const {
    switch (kind) {
        case Kind::permanent:
            return true;
        case Kind::transient:
            return run == first;
        case Kind::intermittent:
            return run >= first && (run - first) % period == 0;
    }
    return true;
}

std::string text(const Elements& elements) {
    std::string out;
    const auto add = [&](const std::string& item) { out += (out.empty() ? "" : ",") + item; };
    for (const auto place : elements.flat) {
        add(fmt::format("#{}", place));
    }
    if (elements.flat.empty()) {
        for (const auto& r : elements.ranges) {
            if (r.step == 1 && r.last == r.first + 1) {
                add(fmt::format("{}", r.first));
                continue;
            }
            if (r == Elements::Range{}) {
                add(":");
                continue;
            }
            auto range = r.first == 0 ? std::string(":") : fmt::format("{}:", r.first);
            range += r.last < 0 ? "" : fmt::format("{}", r.last);
            range += r.step == 1 ? "" : fmt::format(":{}", r.step);
            add(range);
        }
    }
    return "[" + (out.empty() ? "*" : out) + "]";
}

namespace {

[[noreturn]] void outside(const Elements& elements, const Shape& shape) {
    throw Error(Fault::input, fmt::format("element {} lies outside of a tensor of shape {}",
                                          text(elements), shape_text(shape)));
}

}  // namespace

std::vector<std::uint64_t> places(const Elements& elements, const Shape& shape) {
    const auto count = element_count(shape);
    if (!elements.flat.empty()) {
        for (const auto place : elements.flat) {
            if (place >= count) {
                outside(elements, shape);
            }
        }
        return elements.flat;
    }
    if (elements.ranges.size() > shape.size()) {
        outside(elements, shape);
    }
    std::vector<std::uint64_t> result = {0};
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const auto range = d < elements.ranges.size() ? elements.ranges[d] : Elements::Range{};
        const auto last = range.last < 0 ? shape[d] : range.last;
        if (range.first < 0 || last > shape[d] || range.first >= last || range.step < 1) {
            outside(elements, shape);
        }
        std::vector<std::uint64_t> next;
        for (const auto place : result) {
            for (auto i = range.first; i < last; i += range.step) {
                next.push_back(place * static_cast<std::uint64_t>(shape[d]) +
                               static_cast<std::uint64_t>(i));
            }
        }
        result = std::move(next);
    }
    return result;
}

namespace {

bool is_plain(std::string_view name) {
    constexpr std::string_view odd = "'\" >[]+";
    return !name.empty() && name.find_first_of(odd) == std::string_view::npos;
}

// In single quotes, which are doubled inside, unless it is plain.
std::string in_quotes(std::string_view name) {
    if (is_plain(name)) {
        return std::string(name);
    }
    std::string out = "'";
    for (const char c : name) {
        out += c == '\'' ? "''" : std::string(1, c);
    }
    return out + "'";
}

std::string number_text(double number) {
    return fmt::format("{}", number);
}

std::string effect_text(const Effect& e) {
    switch (e.kind) {
        case Effect::Kind::flip:
            return "flip " + bits_text(e.mask);
        case Effect::Kind::stuck0:
            return "stuck0 " + bits_text(e.mask);
        case Effect::Kind::stuck1:
            return "stuck1 " + bits_text(e.mask);
        case Effect::Kind::set:
            return "set " + number_text(e.a);
        case Effect::Kind::random:
            return fmt::format("random {} {} key {}", e.a, e.b, e.key);
        case Effect::Kind::add:
            return "add " + number_text(e.a);
        case Effect::Kind::multiply:
            return "multiply " + number_text(e.a);
        case Effect::Kind::noise:
            return fmt::format("noise {} key {}", e.a, e.key);
        case Effect::Kind::gain:
            return fmt::format("gain {} key {}", e.a, e.key);
        case Effect::Kind::rate:
            return fmt::format("rate {} {} key {}", e.a, bits_text(e.mask), e.key);
        case Effect::Kind::custom:
            return fmt::format("custom {} key {}", in_quotes(e.name), e.key);
    }
    return {};
}

}  // namespace

std::string text(const ModelFault& fault) {
    auto out = in_quotes(fault.tensor);
    out += fault.part == ModelFault::Part::values    ? ".values"
           : fault.part == ModelFault::Part::indices ? ".indices"
                                                     : "";
    if (!fault.reader.empty()) {
        out += ">" + in_quotes(fault.reader);
    }
    out += " " + text(fault.elements) + " " + effect_text(fault.effect);
    const auto& d = fault.duration;
    if (d.kind == Duration::Kind::transient) {
        out += fmt::format(" transient {}", d.first);
    } else if (d.kind == Duration::Kind::intermittent) {
        out += fmt::format(" every {} from {}", d.period, d.first);
    }
    return out;
}

std::string text(std::span<const ModelFault> faults) {
    std::string out;
    for (const auto& fault : faults) {
        out += (out.empty() ? "" : " + ") + text(fault);
    }
    return out;
}

std::uint64_t hash(std::span<const ModelFault> faults) {
    const auto all = text(faults);
    return stable_hash(all.data(), all.size());
}

namespace {

class FaultReader {
public:
    explicit FaultReader(std::string_view text) : text_(text) {}

    std::vector<ModelFault> all() {
        std::vector<ModelFault> faults;
        do {
            faults.push_back(one());
            skip();
        } while (take("+"));
        if (at_ < text_.size()) {
            fail("the end, or + and another fault");
        }
        return faults;
    }

private:
    [[noreturn]] void fail(std::string_view expected) const {
        throw Error(
            Fault::usage,
            fmt::format("in the fault '{}', at column {}: expected {}", text_, at_ + 1, expected),
            "a fault reads: TENSOR[>READER] [ELEMENTS] EFFECT, as in conv1.weight "
            "[3,0,1,1] flip 30");
    }
    void skip() {
        while (at_ < text_.size() && text_[at_] == ' ') {
            ++at_;
        }
    }
    bool take(std::string_view word) {
        skip();
        if (text_.substr(at_).starts_with(word)) {
            at_ += word.size();
            return true;
        }
        return false;
    }
    std::string name(std::string_view end) {
        skip();
        std::string out;
        if (at_ < text_.size() && text_[at_] == '\'') {
            for (++at_; at_ < text_.size(); ++at_) {
                if (text_[at_] == '\'') {
                    if (at_ + 1 < text_.size() && text_[at_ + 1] == '\'') {
                        ++at_;
                    } else {
                        ++at_;
                        return out;
                    }
                }
                out += text_[at_];
            }
            fail("a closing quote");
        }
        const auto last = std::min(text_.find_first_of(end, at_), text_.size());
        out = text_.substr(at_, last - at_);
        at_ = last;
        return out;
    }
    template <class Number>
    Number parsed() {
        skip();
        Number value = 0;
        const auto [end, error] =
            std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc()) {
            fail("a number");
        }
        at_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }
    std::uint64_t count() { return parsed<std::uint64_t>(); }
    double number() { return parsed<double>(); }
    std::uint64_t bits() { return parse_bits(name(" +"), DType::undefined); }
    std::uint64_t key() { return take("key") ? count() : 0; }

    std::int64_t place() {
        const auto value = count();
        if (value > (std::uint64_t{1} << 62)) {
            fail("a smaller number");
        }
        return static_cast<std::int64_t>(value);
    }
    Elements elements() {
        Elements e;
        if (!take("[")) {
            fail("[ and the elements");
        }
        if (take("*")) {
            if (!take("]")) {
                fail("]");
            }
            return e;
        }
        do {
            if (take("#")) {
                e.flat.push_back(count());
                continue;
            }
            Elements::Range range;
            const bool from_start = take(":");
            if (!from_start) {
                range.first = place();
                range.last = range.first + 1;
            }
            if (from_start || take(":")) {
                skip();
                const bool digit =
                    at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
                range.last = digit ? place() : -1;
                if (take(":")) {
                    range.step = place();
                }
            }
            e.ranges.push_back(range);
        } while (take(","));
        if (!take("]")) {
            fail(", or ]");
        }
        if (!e.flat.empty() && !e.ranges.empty()) {
            fail("either indices or #places, not both");
        }
        return e;
    }
    Effect effect() {
        Effect e;
        skip();
        const auto word = name(" +");
        if (word == "flip" || word == "stuck0" || word == "stuck1") {
            e.kind = word == "flip"     ? Effect::Kind::flip
                     : word == "stuck0" ? Effect::Kind::stuck0
                                        : Effect::Kind::stuck1;
            e.mask = bits();
        } else if (word == "zero") {
            e.kind = Effect::Kind::set;
        } else if (word == "set" || word == "add" || word == "multiply") {
            e.kind = word == "set"   ? Effect::Kind::set
                     : word == "add" ? Effect::Kind::add
                                     : Effect::Kind::multiply;
            e.a = number();
        } else if (word == "random") {
            e.kind = Effect::Kind::random;
            e.a = number();
            e.b = number();
            e.key = key();
        } else if (word == "noise" || word == "gain") {
            e.kind = word == "noise" ? Effect::Kind::noise : Effect::Kind::gain;
            e.a = number();
            e.key = key();
        } else if (word == "rate") {
            e.kind = Effect::Kind::rate;
            e.a = number();
            e.mask = bits();
            e.key = key();
        } else if (word == "custom") {
            e.kind = Effect::Kind::custom;
            e.name = name(" +");
            e.key = key();
        } else {
            fail(
                "flip, stuck0, stuck1, zero, set, add, multiply, random, noise, gain, rate or "
                "custom");
        }
        return e;
    }
    ModelFault one() {
        ModelFault fault;
        skip();
        const bool quote = at_ < text_.size() && text_[at_] == '\'';
        fault.tensor = name(" >[");
        const auto suffix = [&](std::string_view word, ModelFault::Part part) {
            if (quote ? take(word) : fault.tensor.ends_with(word)) {
                fault.part = part;
                if (!quote) {
                    fault.tensor.resize(fault.tensor.size() - word.size());
                }
            }
        };
        suffix(".values", ModelFault::Part::values);
        suffix(".indices", ModelFault::Part::indices);
        if (fault.tensor.empty()) {
            fail("the name of a tensor");
        }
        if (take(">")) {
            fault.reader = name(" [");
        }
        fault.elements = elements();
        fault.effect = effect();
        if (take("transient")) {
            fault.duration.kind = Duration::Kind::transient;
            fault.duration.first = count();
        } else if (take("every")) {
            fault.duration.kind = Duration::Kind::intermittent;
            fault.duration.period = count();
            if (fault.duration.period == 0) {
                fail("a period of at least 1");
            }
            fault.duration.first = take("from") ? count() : 0;
        }
        return fault;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::vector<ModelFault> parse_faults(std::string_view text) {
    return FaultReader(text).all();
}

}  // namespace trocar
