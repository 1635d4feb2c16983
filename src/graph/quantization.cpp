#include <fmt/format.h>

#include <algorithm>

#include "trocar/graph.h"

namespace trocar {

namespace {

std::string one_text(float scale, std::int64_t zero) {
    return zero == 0  ? fmt::format("{:.4g} × q", scale)
           : zero < 0 ? fmt::format("{:.4g} × (q + {})", scale, -static_cast<double>(zero))
                      : fmt::format("{:.4g} × (q - {})", scale, zero);
}

}  // namespace

std::string quantization_text(const Quantization& q) {
    if (q.custom) {
        return fmt::format("custom, {} bytes", q.custom->stored_bytes());
    }
    if (q.blocks) {
        const auto& shape = q.blocks->scales.shape();
        return fmt::format("blocks of {}, {} scales", q.blocks->size, shape_text(shape));
    }
    if (q.scales.empty()) {
        return {};
    }
    if (q.scales.size() == 1) {
        return one_text(q.scales[0], q.zero_points.empty() ? 0 : q.zero_points[0]);
    }
    const auto [low, high] = std::minmax_element(q.scales.begin(), q.scales.end());
    return fmt::format("{} scales along axis {}, {:.4g} to {:.4g}", q.scales.size(), q.axis, *low,
                       *high);
}

}  // namespace trocar
