#include <unordered_map>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

using Table = std::unordered_map<std::string_view, Kernel>;

const Table& table() {
    static const Table all = [] {
        Table made;
        for (const auto part :
             {arithmetic_ops(), attention_ops(),     cast_ops(),     contraction_ops(),
              control_ops(),    convolution_ops(),   creation_ops(), gather_ops(),
              loss_ops(),       normalisation_ops(), pooling_ops(),  quantisation_ops(),
              recurrent_ops(),  reduction_ops(),     resize_ops(),   scatter_ops(),
              sequence_ops(),   shape_ops(),         signal_ops(),   softmax_ops(),
              sorting_ops(),    unary_ops(),         vision_ops()}) {
            for (const auto& entry : part) {
                made.emplace(entry.op, entry.kernel);
            }
        }
        return made;
    }();
    return all;
}

}  // namespace

Kernel find_kernel(std::string_view op) {
    const auto found = table().find(op);
    return found != table().end() ? found->second : nullptr;
}

}  // namespace trocar::reference
