#include "tools/summary/pattern.h"

#include <fmt/format.h>

#include <algorithm>

namespace trocar::summary {
namespace {

constexpr std::array<std::size_t, 4> block_sizes{2, 4, 8, 16};

std::size_t extent_of(std::span<const std::int64_t> shape, std::size_t from, std::size_t to) {
    std::size_t n = 1;
    for (std::size_t i = from; i < to; ++i) {
        n *= static_cast<std::size_t>(shape[i]);
    }
    return n;
}

}  // namespace

PatternFinder::PatternFinder(std::span<const std::int64_t> shape, WeightAxes axes) {
    elements_ = extent_of(shape, 0, shape.size());
    for (auto [axis, number] :
         {std::pair{&output_, axes.output}, std::pair{&reduced_, axes.reduced}}) {
        axis->extent = extent_of(shape, number, number + 1);
        axis->inner = extent_of(shape, number + 1, shape.size());
        axis->zeros.resize(axis->extent);
    }
    for (std::size_t i = 0; i < block_sizes.size(); ++i) {
        groups_[i].size = block_sizes[i];
        groups_[i].fewest = block_sizes[i];
        groups_[i].zeros.resize(reduced_.inner);
    }
}

void PatternFinder::Axis::feed(std::span<const std::uint8_t> flags, std::size_t first) {
    std::size_t at = first / inner % extent;
    std::size_t place = first % inner;
    while (!flags.empty()) {
        std::size_t run = std::min(inner - place, flags.size());
        std::uint64_t found = 0;
        for (std::size_t i = 0; i < run; ++i) {
            found += flags[i];
        }
        zeros[at] += found;
        place += run;
        if (place == inner) {
            place = 0;
            at = at + 1 == extent ? 0 : at + 1;
        }
        flags = flags.subspan(run);
    }
}

std::size_t PatternFinder::Axis::empty(std::uint64_t each) const {
    return static_cast<std::size_t>(std::count(zeros.begin(), zeros.end(), each));
}

void PatternFinder::Groups::close(std::size_t place) {
    std::size_t found = zeros[place];
    zeros[place] = 0;
    fewest = std::min(fewest, found);
    ++whole;
    in_empty += found == size ? size : 0;
}

void PatternFinder::feed_groups(std::span<const std::uint8_t> flags, std::size_t first) {
    std::size_t at = first / reduced_.inner % reduced_.extent;
    std::size_t place = first % reduced_.inner;
    for (std::uint8_t flag : flags) {
        for (Groups& g : groups_) {
            if (at % g.size == 0) {  // what an incomplete group left
                g.zeros[place] = 0;
            }
            g.zeros[place] = static_cast<std::uint8_t>(g.zeros[place] + flag);
            if (at % g.size == g.size - 1) {
                g.close(place);
            }
        }
        if (++place == reduced_.inner) {
            place = 0;
            at = at + 1 == reduced_.extent ? 0 : at + 1;
        }
    }
}

void PatternFinder::feed(std::span<const std::uint8_t> flags, std::size_t first) {
    output_.feed(flags, first);
    reduced_.feed(flags, first);
    feed_groups(flags, first);
}

std::string PatternFinder::pattern(std::uint64_t zeros) const {
    std::uint64_t per_output = elements_ / output_.extent;
    std::uint64_t per_input = elements_ / reduced_.extent;
    std::size_t outputs = output_.empty(per_output);
    std::size_t inputs = reduced_.empty(per_input);
    auto share = [](std::size_t part, std::size_t whole, const char* what) {
        return fmt::format("{:.3g} % of {} channels",
                           100.0 * static_cast<double>(part) / static_cast<double>(whole), what);
    };
    if (outputs * per_output == zeros) {
        return share(outputs, output_.extent, "output");
    }
    if (inputs * per_input == zeros) {
        return share(inputs, reduced_.extent, "input");
    }
    for (std::size_t i :
         std::array<std::size_t, 4>{1, 0, 2, 3}) {  // 1:4 and 2:4 before 1:2, then larger groups
        const Groups& g = groups_[i];
        bool half = g.size == 4 && groups_[0].whole > 0 && groups_[0].fewest == 1 && g.fewest == 2;
        if (g.whole > 0 && g.fewest * 2 >= g.size && !half) {
            return fmt::format("{}:{}", g.size - g.fewest, g.size);
        }
    }
    for (std::size_t i = groups_.size(); i-- > 1;) {
        const Groups& g = groups_[i];
        if (g.whole > 0 && g.in_empty == zeros) {
            return fmt::format("1×{} blocks", g.size);
        }
    }
    if (outputs > 0) {
        return "unstructured, " + share(outputs, output_.extent, "output");
    }
    return "unstructured";
}

}  // namespace trocar::summary
