#include "inject/wire.h"

#include <cstring>
#include <type_traits>

#include "trocar/error.h"

namespace trocar::inject {

namespace {

class Packer {
public:
    template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
    void operator()(const T& value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void operator()(const std::string& text) {
        (*this)(text.size());
        bytes += text;
    }
    void operator()(const Metrics& metrics) {
        (*this)(metrics.size());
        for (const auto& [name, number] : metrics) {
            (*this)(name);
            (*this)(number);
        }
    }
    template <class T>
    void operator()(const std::optional<T>& value) {
        (*this)(value.has_value());
        if (value) {
            (*this)(*value);
        }
    }
    std::string bytes;
};

class Unpacker {
public:
    explicit Unpacker(std::string_view bytes) : left_(bytes) {}

    template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
    void operator()(T& value) { std::memcpy(&value, take(sizeof value).data(), sizeof value); }
    void operator()(std::string& text) { text = take(count(1)); }
    void operator()(Metrics& metrics) {
        metrics.resize(count(16));
        for (auto& [name, number] : metrics) {
            (*this)(name);
            (*this)(number);
        }
    }
    template <class T>
    void operator()(std::optional<T>& value) {
        bool there = false;
        (*this)(there);
        value.reset();
        if (there) {
            (*this)(value.emplace());
        }
    }
    // A number of things that take at least so many bytes each.
    std::size_t count(std::size_t bytes_each) {
        std::size_t number = 0;
        (*this)(number);
        if (number > left_.size() / bytes_each) {
            refuse();
        }
        return number;
    }

private:
    [[noreturn]] static void refuse() {
        throw Error(Fault::engine, "what the process that runs the faults says makes no sense");
    }
    std::string_view take(std::size_t size) {
        if (size > left_.size()) {
            refuse();
        }
        const auto some = left_.substr(0, size);
        left_.remove_prefix(size);
        return some;
    }
    std::string_view left_;
};

// The fields of each, in one place for both ways.
template <class Pass, class R>
void pass(Pass& p, R& r) requires std::is_same_v<std::remove_const_t<R>, TrialResult> {
    p(r.trial), p(r.input), p(r.outcome), p(r.golden_top), p(r.faulty_top);
    p(r.sdc1), p(r.sdc5), p(r.sdc10), p(r.sdc20), p(r.positions), p(r.changed);
    p(r.golden_correct), p(r.faulty_correct), p(r.detected);
    p(r.max_abs), p(r.mean_abs), p(r.max_rel), p(r.sqnr_db), p(r.cosine), p(r.metric);
    p(r.failure), p(r.metrics);
}

template <class Pass, class E>
void pass(Pass& p, E& e) requires std::is_same_v<std::remove_const_t<E>, LayerEffect> {
    p(e.trial), p(e.input), p(e.tensor), p(e.op), p(e.changed), p(e.bad), p(e.max_abs);
}

template <class Pass, class G>
void pass(Pass& p, G& g) requires std::is_same_v<std::remove_const_t<G>, GoldenResult> {
    p(g.input), p(g.name), p(g.label), p(g.top), p(g.left_out), p(g.correct);
}

template <class T>
void pass_list(Packer& p, const std::vector<T>& list) {
    constexpr std::size_t about = 160;  // bytes of an item
    p.bytes.reserve(p.bytes.size() + list.size() * about);
    p(list.size());
    for (const auto& item : list) {
        pass(p, item);
    }
}

template <class T>
void pass_list(Unpacker& p, std::vector<T>& list) {
    list.resize(p.count(8));
    for (auto& item : list) {
        pass(p, item);
    }
}

}  // namespace

std::string packed(const Share& share) {
    Packer p;
    p(share.group), p(share.input), p(share.plainly), p(share.trials.size());
    for (const auto trial : share.trials) {
        p(trial);
    }
    return std::move(p.bytes);
}

Share unpacked_share(std::string_view bytes) {
    Unpacker p(bytes);
    Share share;
    p(share.group), p(share.input), p(share.plainly);
    share.trials.resize(p.count(sizeof(std::uint64_t)));
    for (auto& trial : share.trials) {
        p(trial);
    }
    return share;
}

std::string packed(const std::vector<TrialResult>& results,
                   const std::vector<LayerEffect>& effects) {
    Packer p;
    pass_list(p, results);
    pass_list(p, effects);
    return std::move(p.bytes);
}

Results unpacked_results(std::string_view bytes) {
    Unpacker p(bytes);
    Results all;
    pass_list(p, all.results);
    pass_list(p, all.effects);
    return all;
}

std::string packed(const GoldenResult& golden) {
    Packer p;
    pass(p, golden);
    return std::move(p.bytes);
}

GoldenResult unpacked_golden(std::string_view bytes) {
    Unpacker p(bytes);
    GoldenResult golden;
    pass(p, golden);
    return golden;
}

}  // namespace trocar::inject
