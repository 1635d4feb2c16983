// Ops that make one number of many, and running sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

// Axes are an attribute first, an input later; without axes all are meant, or none.
struct Reduction {
    Indices axes;
    bool keep = true;
};

Reduction reduction_of(const Call& call) {
    const auto rank = call.shape(0).size();
    Reduction reduction;
    reduction.keep = call.integer("keepdims", 1) != 0;
    const auto given = call.integers("axes", 1).value_or(Integers{});
    if (!given.empty()) {
        reduction.axes = axes_of(given, rank);
    } else if (call.integer("noop_with_empty_axes", 0) == 0) {
        reduction.axes = all_axes(rank);
    }
    return reduction;
}

// `f` makes a number of the elements of a line: f(elements, steps) with elements at the start.
template <class F>
void reduce(Call& call, F&& f) {
    const auto shape = call.shape(0);
    const auto dtype = call.dtype(0);
    const auto reduction = reduction_of(call);
    const auto lines = lines_along(shape, reduction.axes);
    const auto to = reduction.keep ? lines.kept : without(shape, reduction.axes);
    with_number(dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto x = read<T>(call.tensor(0));
        std::vector<T> made;
        made.reserve(lines.starts.size());
        for (const auto start : lines.starts) {
            made.push_back(f(x.empty() ? x.data() : x.data() + start, lines.steps));
        }
        call.give(0, dtype, to, made);
    });
}

template <class T>
T plus(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
        return a + b;
    }
}
template <class T>
T times(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
        return a * b;
    }
}

// The sum of a function of the elements.
template <class T, class F>
T total(const T* x, const Indices& steps, F&& f) {
    T sum = 0;
    for (const auto step : steps) {
        sum = plus(sum, f(x[step]));
    }
    return sum;
}

template <class T>
T magnitude(T x) {
    if constexpr (std::is_integral_v<T>) {
        return x < 0 ? static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x)) : x;
    } else {
        return std::abs(x);
    }
}

void reduce_sum(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        return total(x, steps, [](auto v) { return v; });
    });
}
void reduce_mean(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        using T = std::decay_t<decltype(*x)>;
        const auto sum = total(x, steps, [](auto v) { return v; });
        if constexpr (std::is_integral_v<T>) {
            require(!steps.empty(), "there is no mean of nothing");
        }
        return static_cast<T>(sum / static_cast<T>(steps.size()));
    });
}
void reduce_l1(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        return total(x, steps, [](auto v) { return magnitude(v); });
    });
}
void reduce_sum_square(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        return total(x, steps, [](auto v) { return times(v, v); });
    });
}
template <class T, class F>
T through(F&& f, T sum) {
    return static_cast<T>(f(static_cast<double>(sum)));
}
void reduce_l2(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        return through([](double s) { return std::sqrt(s); },
                       total(x, steps, [](auto v) { return times(v, v); }));
    });
}
void reduce_log_sum(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        return through([](double s) { return std::log(s); },
                       total(x, steps, [](auto v) { return v; }));
    });
}
void reduce_log_sum_exp(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        using T = std::decay_t<decltype(*x)>;
        double peak = -std::numeric_limits<double>::infinity();
        for (const auto step : steps) {
            peak = std::max(peak, static_cast<double>(x[step]));
        }
        const double shift = std::isfinite(peak) ? peak : 0;
        double sum = 0;
        for (const auto step : steps) {
            sum += std::exp(static_cast<double>(x[step]) - shift);
        }
        return static_cast<T>(shift + std::log(sum));
    });
}
void reduce_product(Call& call) {
    reduce(call, [](const auto* x, const Indices& steps) {
        std::decay_t<decltype(*x)> product = 1;
        for (const auto step : steps) {
            product = times(product, x[step]);
        }
        return product;
    });
}

// Of nothing: the smallest or largest number of the type.
template <class T>
T extreme_of_nothing(DType dtype, bool largest) {
    if constexpr (std::is_same_v<T, double>) {
        const double infinity = std::numeric_limits<double>::infinity();
        return largest ? -infinity : infinity;
    } else {
        if (dtype == DType::boolean) {
            return largest ? 0 : 1;
        }
        const auto width = bits(dtype);
        const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 ||
                               dtype == DType::i64 || dtype == DType::i4 || dtype == DType::i2;
        const auto all = ~std::uint64_t{0} >> (64 - width);
        if (is_signed) {
            const auto high = static_cast<std::int64_t>(all >> 1);
            return static_cast<T>(largest ? -high - 1 : high);
        }
        return static_cast<T>(largest ? 0 : all);
    }
}

void reduce_extreme(Call& call, bool largest) {
    const auto dtype = call.dtype(0);
    reduce(call, [&](const auto* x, const Indices& steps) {
        using T = std::decay_t<decltype(*x)>;
        if (steps.empty()) {
            return extreme_of_nothing<T>(dtype, largest);
        }
        T found = x[steps[0]];
        for (const auto step : steps) {
            if constexpr (std::is_same_v<T, double>) {
                if (std::isnan(x[step])) {
                    return x[step];
                }
            }
            found = largest ? std::max(found, x[step]) : std::min(found, x[step]);
        }
        return found;
    });
}
void reduce_max(Call& call) {
    reduce_extreme(call, true);
}
void reduce_min(Call& call) {
    reduce_extreme(call, false);
}

void arg_extreme(Call& call, bool largest) {
    const auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    require(shape[axis] > 0, "there is nothing along the axis");
    const bool last = call.integer("select_last_index", 0) != 0;
    const auto lines = lines_along(shape, {axis});
    Integers made;
    with_number(call.dtype(0), [&](auto zero) {
        const auto x = read<decltype(zero)>(call.tensor(0));
        for (const auto start : lines.starts) {
            std::size_t best = 0;
            for (std::size_t i = 1; i < lines.steps.size(); ++i) {
                const auto a = x[start + lines.steps[i]];
                const auto b = x[start + lines.steps[best]];
                if ((largest ? a > b : a < b) || (last && a == b)) {
                    best = i;
                }
            }
            made.push_back(to_integer(best));
        }
    });
    const bool keep = call.integer("keepdims", 1) != 0;
    call.give(0, DType::i64, keep ? lines.kept : without(shape, {axis}), made);
}
void arg_max(Call& call) {
    arg_extreme(call, true);
}
void arg_min(Call& call) {
    arg_extreme(call, false);
}

// Running sums and products along an axis.
template <class F>
void cumulate(Call& call, int neutral, F&& f) {
    const auto shape = call.shape(0);
    const auto axis = axis_of(call.integer(std::size_t{1}), shape.size());
    const bool exclusive = call.integer("exclusive", 0) != 0;
    const bool reverse = call.integer("reverse", 0) != 0;
    auto lines = lines_along(shape, {axis});
    if (reverse) {
        std::reverse(lines.steps.begin(), lines.steps.end());
    }
    with_number(call.dtype(0), [&](auto zero) {
        using T = decltype(zero);
        const auto x = read<T>(call.tensor(0));
        std::vector<T> made(x.size());
        for (const auto start : lines.starts) {
            auto running = static_cast<T>(neutral);
            for (const auto step : lines.steps) {
                const T next = f(running, x[start + step]);
                made[start + step] = exclusive ? running : next;
                running = next;
            }
        }
        call.give(0, call.dtype(0), shape, made);
    });
}
void cumulative_sum(Call& call) {
    cumulate(call, 0, [](auto a, auto b) { return plus(a, b); });
}
void cumulative_product(Call& call) {
    cumulate(call, 1, [](auto a, auto b) { return times(a, b); });
}

}  // namespace

std::span<const Entry> reduction_ops() {
    static constexpr Entry ops[]{
        {"ArgMax", arg_max},
        {"ArgMin", arg_min},
        {"CumProd", cumulative_product},
        {"CumSum", cumulative_sum},
        {"ReduceL1", reduce_l1},
        {"ReduceL2", reduce_l2},
        {"ReduceLogSum", reduce_log_sum},
        {"ReduceLogSumExp", reduce_log_sum_exp},
        {"ReduceMax", reduce_max},
        {"ReduceMean", reduce_mean},
        {"ReduceMin", reduce_min},
        {"ReduceProd", reduce_product},
        {"ReduceSum", reduce_sum},
        {"ReduceSumSquare", reduce_sum_square},
    };
    return ops;
}

}  // namespace trocar::reference
