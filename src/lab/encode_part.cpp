#include "lab/encode_part.h"

#include <fmt/format.h>

#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/mapping.h"

namespace trocar::lab {

namespace {

Model mapped(const Model& part, const std::string& dialect) {
    auto made = map_model(part, dialect);
    for (const auto& op : made.ops) {
        if (op.state == MappedOp::State::impossible) {
            throw Error(Fault::unsupported, fmt::format("{} '{}' cannot be mapped to {}: {}",
                                                        op.type, op.name, dialect, op.why));
        }
    }
    return std::move(made.model);
}

}  // namespace

std::string encode_part(const Model& part, const std::string& name,
                        const std::function<Model(const Model&)>& observe) {
    const auto* format = find_format(name);
    if (format == nullptr || format->encode == nullptr) {
        throw Error(Fault::unsupported,
                    fmt::format("parts of a model cannot be written as {}", name));
    }
    // Two formats of one dialect may still have different ops: rules of a dialect to itself.
    const bool same = part.dialect == format->dialect &&
                      (part.format == name || !can_map(part.dialect, format->dialect));
    if (same) {
        return format->encode(part, {}).bytes;
    }
    if (needs_types(part.dialect, format->dialect) && !has_all_types(part.graph)) {
        return format->encode(mapped(observe(part), format->dialect), {}).bytes;
    }
    return format->encode(mapped(part, format->dialect), {}).bytes;
}

}  // namespace trocar::lab
