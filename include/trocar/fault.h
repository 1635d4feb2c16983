#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/dtype.h"
#include "trocar/tensor.h"

#pragma GCC visibility push(default)
namespace trocar {

// Which elements of a tensor, in its plain (logical) shape.
struct Elements {
    // From `first` up to but not with `last`, every `step`-th; `last` -1: to the end. A single
    // index i is {i, i + 1}.
    struct Range {
        std::int64_t first = 0;
        std::int64_t last = -1;
        std::int64_t step = 1;
        bool operator==(const Range&) const = default;
    };
    std::vector<Range> ranges;        // by dimension; dimensions beyond the last: all of them
    std::vector<std::uint64_t> flat;  // places in row-major order, where not empty instead

    bool operator==(const Elements&) const = default;
};
// "[3,0,1,1]", "[0,2:4,::2]", "[*]" (all), "[#17]" and "[#17,#40]" (places in row-major order).
std::string text(const Elements& elements);
// Places in row-major order, ascending within `ranges`, as given in `flat`. Throws Error(input) on
// what lies outside of the shape.
std::vector<std::uint64_t> places(const Elements& elements, const Shape& shape);

// What happens to an element. Bits are those of the stored representation, 0 the lowest; of a type
// below 8 bits those of the element, not of the byte that it shares.
struct Effect {
    enum class Kind {
        flip,      // the bits of `mask` are inverted
        stuck0,    // … are 0
        stuck1,    // … are 1
        set,       // the number `a`, rounded to the type
        random,    // a number uniform in [`a`, `b`)
        add,       // the number and `a`
        multiply,  // the number times `a`
        noise,     // the number and a normal one of deviation `a`
        gain,      // the number times 1 + a normal one of deviation `a`
        rate,      // each of the bits in `mask` is inverted with probability `a`
        custom,    // what the function of the name `name` does
    };
    Kind kind = Kind::flip;
    std::uint64_t mask = 0;
    double a = 0;
    double b = 0;
    std::uint64_t key = 0;  // of what is drawn: random, noise, gain, rate, custom
    std::string name = {};

    bool draws() const {
        return kind == Kind::random || kind == Kind::noise || kind == Kind::gain ||
               kind == Kind::rate || kind == Kind::custom;
    }
    bool operator==(const Effect&) const = default;
};

// In which runs of a trial, which are numbered by their inputs, a fault is there.
struct Duration {
    enum class Kind {
        permanent,     // in all
        transient,     // in run `first` only
        intermittent,  // in run `first` and every `period`-th after it
    };
    Kind kind = Kind::permanent;
    std::uint64_t first = 0;
    std::uint64_t period = 1;

    bool active(std::uint64_t run) const;
    bool operator==(const Duration&) const = default;
};

// One fault. A small value; its text is stable and reads back.
struct ModelFault {
    // The part of a constant that is stored sparse; `whole` for all others.
    enum class Part { whole, values, indices };

    std::string tensor;       // its name in the view that the campaign is in
    std::string reader = {};  // the name of the one op that sees it, or #PLACE; empty: all readers
    Part part = Part::whole;
    Elements elements = {};
    Effect effect = {};
    Duration duration = {};

    bool operator==(const ModelFault&) const = default;
};

// "'conv1.weight'>'/conv1/Conv' [3,0,1,1] flip 30": tensor, the reader where only one sees it, the
// elements, the effect, and when unless always: "transient 5", "every 3 from 1". Names stand in
// single quotes unless they are plain. `.values` or `.indices` after the name for sparse constants.
std::string text(const ModelFault& fault);
// Several at once are joined by " + ".
std::string text(std::span<const ModelFault> faults);
std::vector<ModelFault> parse_faults(std::string_view text);  // throws Error(usage) with the place
// The same for equal faults, everywhere, for ever.
std::uint64_t hash(std::span<const ModelFault> faults);

// "30", "0,3,30", "23-30", "sign", "exponent", "mantissa", "all": bits of a type. Throws
// Error(usage) on what the type does not have.
std::uint64_t parse_bits(std::string_view text, DType dtype);
std::string bits_text(std::uint64_t mask);  // "30", "0,3,23-30"

// A fault model of the user's own: changes element `place` of `tensor`; `draw` is made of the
// fault's key and the element.
using CustomEffect = std::function<void(DType dtype, std::span<std::byte> tensor, std::size_t place,
                                        std::uint64_t draw)>;

// Applies an effect to element `stored` of dense elements, which is element `place` in row-major
// order of the plain tensor (the two differ in blocked layouts; what is drawn depends on `place`).
// Throws Error(usage) on a bit outside of the type or a type that has no bits.
void apply(const Effect& effect, DType dtype, std::span<std::byte> tensor, std::size_t stored,
           std::uint64_t place, const CustomEffect& custom = {});

}  // namespace trocar
#pragma GCC visibility pop
