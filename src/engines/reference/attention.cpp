#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/reference/call.h"
#include "engines/reference/softmax.h"

namespace trocar::reference {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// batch, heads, length, size.
struct Heads {
    std::size_t batch = 0;
    std::size_t heads = 0;
    std::size_t length = 0;
    std::size_t size = 0;
    Numbers numbers;

    const double* row(std::size_t b, std::size_t h, std::size_t i) const {
        return numbers.data() + ((b * heads + h) * length + i) * size;
    }
    double* row(std::size_t b, std::size_t h, std::size_t i) {
        return numbers.data() + ((b * heads + h) * length + i) * size;
    }
    Shape shape() const {
        return {to_integer(batch), to_integer(heads), to_integer(length), to_integer(size)};
    }
};

Heads blank(std::size_t batch, std::size_t heads, std::size_t length, std::size_t size) {
    Heads made{batch, heads, length, size, {}};
    made.numbers.assign(count(made.shape()), 0.0);
    return made;
}

// Three dimensions hold the heads side by side.
Heads split_heads(const Call& call, std::size_t slot, std::int64_t heads) {
    const auto shape = call.shape(slot);
    auto x = call.numbers(slot);
    if (shape.size() == 4) {
        return {to_size(shape[0]), to_size(shape[1]), to_size(shape[2]), to_size(shape[3]),
                std::move(x)};
    }
    require(shape.size() == 3 && heads > 0 && shape[2] % heads == 0,
            "three dimensions with a multiple of the heads are wanted, or four");
    auto made =
        blank(to_size(shape[0]), to_size(heads), to_size(shape[1]), to_size(shape[2] / heads));
    const double* from = x.data();
    for (std::size_t b = 0; b < made.batch; ++b) {
        for (std::size_t i = 0; i < made.length; ++i) {
            for (std::size_t h = 0; h < made.heads; ++h, from += made.size) {
                std::copy_n(from, made.size, made.row(b, h, i));
            }
        }
    }
    return made;
}

Numbers merged(const Heads& x) {
    Numbers made;
    made.reserve(x.numbers.size());
    for (std::size_t b = 0; b < x.batch; ++b) {
        for (std::size_t i = 0; i < x.length; ++i) {
            for (std::size_t h = 0; h < x.heads; ++h) {
                made.insert(made.end(), x.row(b, h, i), x.row(b, h, i) + x.size);
            }
        }
    }
    return made;
}

// What came before, and then the new.
Heads with_past(const Call& call, std::size_t slot, Heads fresh) {
    if (!call.has(slot)) {
        return fresh;
    }
    const auto past = split_heads(call, slot, 0);
    require(past.batch == fresh.batch && past.heads == fresh.heads && past.size == fresh.size,
            "the past does not fit the new keys and values");
    auto all = blank(fresh.batch, fresh.heads, past.length + fresh.length, fresh.size);
    for (std::size_t b = 0; b < all.batch; ++b) {
        for (std::size_t h = 0; h < all.heads; ++h) {
            std::copy_n(past.row(b, h, 0), past.length * past.size, all.row(b, h, 0));
            std::copy_n(fresh.row(b, h, 0), fresh.length * fresh.size, all.row(b, h, past.length));
        }
    }
    return all;
}

// What is added to the score of a query and a key: 0, a bias, or minus infinity.
class Bias {
public:
    Bias(const Call& call, const Heads& scores, std::size_t past) : scores_(scores) {
        causal_ = call.integer("is_causal", 0) != 0;
        const auto widest = to_integer(most_elements);
        left_ = std::min(call.integer("left_window_size", -1), widest);
        right_ = std::min(call.integer("right_window_size", -1), widest);
        if (call.has(6)) {
            valid_ = call.integers(6);
            require(valid_.size() == scores.batch, "one number of keys per sample is wanted");
            for (auto& keys : valid_) {
                keys = std::clamp<std::int64_t>(keys, 0, widest);
            }
        }
        past_ = to_integer(past);
        if (call.has(3)) {
            read_mask(call);
        }
    }

    double at(std::size_t b, std::size_t h, std::size_t query, std::size_t key) const {
        const auto k = to_integer(key);
        auto offset = past_;
        if (!valid_.empty()) {
            if (k >= valid_[b]) {
                return -infinity;
            }
            offset = past_ == 0 ? valid_[b] - to_integer(scores_.length) : past_;
        }
        const auto place = to_integer(query) + offset;
        if ((causal_ && k > place) || (left_ >= 0 && k < place - left_) ||
            (right_ >= 0 && k > place + right_)) {
            return -infinity;
        }
        if (mask_.empty()) {
            return 0;
        }
        if (key >= mask_keys_) {
            return -infinity;
        }
        return mask_[places_[((b * scores_.heads + h) * scores_.length + query) * mask_keys_ +
                             key]];
    }

private:
    // Its last dimension may be shorter than there are keys: those behind are not seen.
    void read_mask(const Call& call) {
        const auto shape = call.shape(3);
        require(!shape.empty(), "the mask has no dimensions");
        mask_ = call.numbers(3);
        if (call.dtype(3) == DType::boolean) {
            for (auto& m : mask_) {
                m = m != 0 ? 0 : -infinity;
            }
        }
        mask_keys_ = shape.back() == 1 ? scores_.size : to_size(shape.back());
        require(mask_keys_ <= scores_.size, "the mask is longer than there are keys");
        auto to = scores_.shape();
        to.back() = to_integer(mask_keys_);
        places_ = spread(shape, to);
    }

    const Heads& scores_;
    bool causal_ = false;
    std::int64_t left_ = -1;
    std::int64_t right_ = -1;
    std::int64_t past_ = 0;
    Integers valid_;
    Numbers mask_;
    Indices places_;
    std::size_t mask_keys_ = 0;
};

// Softmax over the keys; a query that sees no key gets nothing.
void weigh(Heads& scores) {
    Indices steps = all_axes(scores.size);
    const auto lines = scores.batch * scores.heads * scores.length;
    for (std::size_t l = 0; l < lines; ++l) {
        double* x = scores.numbers.data() + l * scores.size;
        const bool none = std::all_of(x, x + scores.size, [](double v) { return v == -infinity; });
        if (none) {
            std::fill_n(x, scores.size, 0.0);
        } else {
            softmax_line(x, steps, false);
        }
    }
}

void attention(Call& call) {
    const auto q = split_heads(call, 0, call.integer("q_num_heads", 0));
    const auto fresh = split_heads(call, 1, call.integer("kv_num_heads", 0));
    const auto past = call.has(4) ? size_at(call.shape(4), 2) : 0;
    const auto k = with_past(call, 4, fresh);
    const auto v = with_past(call, 5, split_heads(call, 2, call.integer("kv_num_heads", 0)));
    require(k.batch == q.batch && v.batch == q.batch && k.size == q.size && v.length == k.length &&
                k.heads == v.heads && k.heads > 0 && q.heads % k.heads == 0,
            "query, key and value do not fit together");
    const auto shared = q.heads / k.heads;  // queries per key
    const auto scale = call.number("scale", 1 / std::sqrt(static_cast<double>(q.size)));
    const auto softcap = call.number("softcap", 0);
    const auto mode = call.integer("qk_matmul_output_mode", 0);
    auto scores = blank(q.batch, q.heads, q.length, k.length);
    auto shown = scores;
    const Bias bias(call, scores, past);
    for (std::size_t b = 0; b < q.batch; ++b) {
        for (std::size_t h = 0; h < q.heads; ++h) {
            for (std::size_t i = 0; i < q.length; ++i) {
                const double* query = q.row(b, h, i);
                for (std::size_t j = 0; j < k.length; ++j) {
                    const double* key = k.row(b, h / shared, j);
                    double score = 0;
                    for (std::size_t d = 0; d < q.size; ++d) {
                        score += query[d] * key[d];
                    }
                    const double raw = score * scale;
                    const double capped = softcap > 0 ? softcap * std::tanh(raw / softcap) : raw;
                    const double biased = capped + bias.at(b, h, i, j);
                    scores.row(b, h, i)[j] = biased;
                    shown.row(b, h, i)[j] = mode == 0 ? raw : mode == 1 ? capped : biased;
                }
            }
        }
    }
    weigh(scores);
    auto made = blank(q.batch, q.heads, q.length, v.size);
    for (std::size_t b = 0; b < q.batch; ++b) {
        for (std::size_t h = 0; h < q.heads; ++h) {
            for (std::size_t i = 0; i < q.length; ++i) {
                double* to = made.row(b, h, i);
                for (std::size_t j = 0; j < k.length; ++j) {
                    const double weight = scores.row(b, h, i)[j];
                    const double* value = v.row(b, h / shared, j);
                    for (std::size_t d = 0; d < v.size; ++d) {
                        to[d] += weight * value[d];
                    }
                }
            }
        }
    }
    if (call.shape(0).size() == 4) {
        call.give(0, call.dtype(0), made.shape(), made.numbers);
    } else {
        const Shape shape{to_integer(made.batch), to_integer(made.length),
                          to_integer(made.heads * made.size)};
        call.give(0, call.dtype(0), shape, merged(made));
    }
    call.give(1, call.dtype(1), k.shape(), k.numbers);
    call.give(2, call.dtype(2), v.shape(), v.numbers);
    call.give(3, call.dtype(0), shown.shape(), mode == 3 ? scores.numbers : shown.numbers);
}

// --- Linear attention ---------------------------------------------------------------------------

// A state of keys by values that every token decays and adds to.
class LinearState {
public:
    LinearState(std::size_t keys, std::size_t values, double* state)
        : keys_(keys), values_(values), state_(state) {}

    void decay(const double* logarithms, bool per_key) {
        for (std::size_t i = 0; i < keys_; ++i) {
            const double factor = std::exp(logarithms[per_key ? i : 0]);
            for (std::size_t j = 0; j < values_; ++j) {
                state_[i * values_ + j] *= factor;
            }
        }
    }
    // Adds the outer product of key and value; `rate`: of what the state does not yet say.
    void add(const double* key, const double* value, const double* rate) {
        Numbers added(value, value + values_);
        if (rate != nullptr) {
            const auto said = read(key, 1);
            for (std::size_t j = 0; j < values_; ++j) {
                added[j] = *rate * (added[j] - said[j]);
            }
        }
        for (std::size_t i = 0; i < keys_; ++i) {
            for (std::size_t j = 0; j < values_; ++j) {
                state_[i * values_ + j] += key[i] * added[j];
            }
        }
    }
    Numbers read(const double* key, double scale) const {
        Numbers made(values_, 0.0);
        for (std::size_t i = 0; i < keys_; ++i) {
            for (std::size_t j = 0; j < values_; ++j) {
                made[j] += scale * key[i] * state_[i * values_ + j];
            }
        }
        return made;
    }

private:
    std::size_t keys_;
    std::size_t values_;
    double* state_;
};

void linear_attention(Call& call) {
    const auto kv_heads = call.integer("kv_num_heads", 0);
    const auto q = split_heads(call, 0, call.integer("q_num_heads", 0));
    const auto k = split_heads(call, 1, kv_heads);
    const auto v = split_heads(call, 2, kv_heads);
    require(k.batch == q.batch && v.batch == q.batch && k.length == q.length &&
                v.length == q.length && k.size == q.size && k.heads == v.heads && k.heads > 0 &&
                q.heads % k.heads == 0,
            "query, key and value do not fit together");
    const auto rule = call.text("update_rule", "gated_delta");
    const bool gated = rule == "gated" || rule == "gated_delta";
    const bool delta = rule == "delta" || rule == "gated_delta";
    require(gated || delta || rule == "linear", "there is no such update_rule");
    auto scale = call.number("scale", 0);
    scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(q.size)) : scale;
    const Shape state_shape{to_integer(k.batch), to_integer(k.heads), to_integer(k.size),
                            to_integer(v.size)};
    auto state = call.has(3) ? call.numbers(3) : Numbers(count(state_shape), 0.0);
    require(state.size() == count(state_shape), "the past does not fit the keys and values");
    const auto decay = gated ? split_heads(call, 4, kv_heads) : Heads{};
    const auto rate = delta ? call.numbers(5) : Numbers{};
    const auto rates = delta ? size_at(call.shape(5), 2) : 1;
    const auto tokens = k.batch * k.length;
    require(!gated || (decay.batch == k.batch && decay.length == k.length &&
                       (decay.size == 1 || decay.size == k.size)),
            "the decay does not fit the keys");
    require(!delta || (rate.size() == tokens * rates && (rates == 1 || rates == k.heads)),
            "the rates do not fit the keys");
    auto made = blank(q.batch, q.heads, q.length, v.size);
    const auto shared = q.heads / k.heads;
    for (std::size_t line = 0; line < k.batch * k.heads; ++line) {
        const auto b = line / k.heads;
        const auto h = line % k.heads;
        LinearState memory(k.size, v.size, state.data() + line * k.size * v.size);
        for (std::size_t t = 0; t < k.length; ++t) {
            if (gated) {
                memory.decay(decay.row(b, h, t), decay.size > 1);
            }
            const auto at = (b * k.length + t) * rates + (rates == 1 ? 0 : h);
            memory.add(k.row(b, h, t), v.row(b, h, t), delta ? &rate[at] : nullptr);
            for (std::size_t i = h * shared; i < (h + 1) * shared; ++i) {
                const auto answer = memory.read(q.row(b, i, t), scale);
                std::copy(answer.begin(), answer.end(), made.row(b, i, t));
            }
        }
    }
    const Shape shape{to_integer(made.batch), to_integer(made.length),
                      to_integer(made.heads * made.size)};
    call.give(0, call.dtype(0), shape, merged(made));
    call.give(1, call.has(3) ? call.dtype(3) : call.dtype(0), state_shape, state);
}

// Pairs of numbers are turned by an angle that depends on the place in the sequence.
void rotary_embedding(Call& call) {
    auto x = split_heads(call, 0, call.integer("num_heads", 0));
    const auto given = call.integer("rotary_embedding_dim", 0);
    const auto width = given == 0 ? x.size : to_size(given);
    require(width <= x.size && width % 2 == 0, "the number of turned dimensions is wrong");
    const bool interleaved = call.integer("interleaved", 0) != 0;
    const auto half = width / 2;
    const auto cosines = call.numbers(1);
    const auto sines = call.numbers(2);
    const auto rows = half == 0 ? 0 : cosines.size() / half;
    const auto caches = call.shape(1);
    require(!caches.empty() && to_size(caches.back()) == half && call.shape(2) == caches,
            "the caches do not fit the turned dimensions");
    Integers positions;
    if (call.has(3)) {
        positions = call.integers(3);
    } else {
        for (std::size_t i = 0; i < x.batch * x.length; ++i) {
            positions.push_back(to_integer(i));
        }
    }
    require(positions.size() == x.batch * x.length, "one position per token is wanted");
    for (std::size_t b = 0; b < x.batch; ++b) {
        for (std::size_t i = 0; i < x.length; ++i) {
            const auto position = positions[b * x.length + i];
            require(position >= 0 && to_size(position) < rows, "a position is outside the caches");
            for (std::size_t h = 0; h < x.heads; ++h) {
                double* to = x.row(b, h, i);
                for (std::size_t d = 0; d < half; ++d) {
                    double& first = to[interleaved ? 2 * d : d];
                    double& second = to[interleaved ? 2 * d + 1 : half + d];
                    const double cosine = cosines[to_size(position) * half + d];
                    const double sine = sines[to_size(position) * half + d];
                    const double real = cosine * first - sine * second;
                    second = sine * first + cosine * second;
                    first = real;
                }
            }
        }
    }
    const bool flat = call.shape(0).size() == 3;
    call.give(0, call.dtype(0), call.shape(0), flat ? merged(x) : x.numbers);
}

}  // namespace

std::span<const Entry> attention_ops() {
    static constexpr Entry ops[]{
        {"Attention", attention},
        {"LinearAttention", linear_attention},
        {"RotaryEmbedding", rotary_embedding},
    };
    return ops;
}

}  // namespace trocar::reference
