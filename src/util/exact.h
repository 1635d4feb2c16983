#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace trocar {

// A sum of doubles without rounding, of which the sign is wanted. As long as nothing overflows.
class ExactSum {
public:
    void add(double number) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            double part = parts_[i];
            if (std::abs(number) < std::abs(part)) {
                std::swap(number, part);
            }
            const double high = number + part;
            const double low = part - (high - number);
            if (low != 0) {
                parts_[kept++] = low;
            }
            number = high;
        }
        parts_[kept++] = number;
        count_ = kept;
    }

    // The product, shifted by a power of two.
    void add_product(double x, double y, int shift = 0) {
        const double product = x * y;
        add(std::ldexp(product, shift));
        add(std::ldexp(std::fma(x, y, -product), shift));
    }

    int sign() const {
        // Parts do not overlap and grow: the last one that is not 0 decides.
        for (auto i = count_; i-- > 0;) {
            if (parts_[i] != 0) {
                return parts_[i] > 0 ? 1 : -1;
            }
        }
        return 0;
    }

private:
    std::array<double, 24> parts_{};  // one more at most with each number
    std::size_t count_ = 0;
};

}  // namespace trocar
