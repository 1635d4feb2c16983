#include "util/same_bits.h"

#include <algorithm>

namespace trocar {

bool same_bits(const Value& a, const Value& b) {
    if (a.kind() != b.kind() || a.dtype() != b.dtype() || a.shape() != b.shape()) {
        return false;
    }
    switch (a.kind()) {
        case Value::Kind::none:
            return true;
        case Value::Kind::tensor: {
            if (a.dtype() == DType::string) {
                return a.string_values() == b.string_values();
            }
            if (!a.device().is_host() || !b.device().is_host()) {
                return false;
            }
            const auto left = a.bytes();
            const auto right = b.bytes();
            return std::equal(left.begin(), left.end(), right.begin(), right.end());
        }
        case Value::Kind::sequence:
        case Value::Kind::map: {
            const auto left = a.items();
            const auto right = b.items();
            return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                              [](const Value& x, const Value& y) { return same_bits(x, y); });
        }
        default:
            return false;
    }
}

bool same_bits(const std::vector<NamedValue>& a, const std::vector<NamedValue>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const NamedValue& x, const NamedValue& y) {
                          return x.name == y.name && same_bits(x.value, y.value);
                      });
}

}  // namespace trocar
