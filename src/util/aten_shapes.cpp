#include <algorithm>
#include <charconv>

#include "util/aten_type_rules.h"

// Types of what ops make that move elements.
namespace trocar::aten {

namespace {

Dims with(Dims dims, std::int64_t at, Dim size) {
    if (dims && at >= 0 && at < static_cast<std::int64_t>(dims->size())) {
        (*dims)[static_cast<std::size_t>(at)] = std::move(size);
    }
    return dims;
}

}  // namespace

// The last axes change, the others stay.
Types resized(const Look& look) {
    auto made = look.type(0);
    const auto last = look.op.type.ends_with("3d") ? 3U : look.op.type.ends_with("1d") ? 1U : 2U;
    const auto sizes = look.op.integers("output_size");
    for (std::size_t i = 0; made.dims && i < last && i < made.dims->size(); ++i) {
        auto& dim = (*made.dims)[made.dims->size() - 1 - i];
        dim = sizes.size() == last ? Dim{sizes[last - 1 - i], {}} : Dim{};
    }
    return {made, tensor(DType::i64, made.dims)};
}
Types padded(const Look& look) {
    auto made = look.type(0);
    const auto pads = look.op.integers("pad").size() / 2;
    for (std::size_t i = 0; made.dims && i < made.dims->size(); ++i) {
        if (i < pads || pads == 0) {
            (*made.dims)[made.dims->size() - 1 - i] = Dim{};
        }
    }
    return {made};
}

// Sizes that an attribute states; "*" and -1 are not known.
Dims stated(const Op& op, const char* name) {
    const auto* attribute = op.attribute(name);
    if (attribute == nullptr) {
        return std::nullopt;
    }
    std::vector<Dim> dims;
    if (const auto* wholes = std::get_if<std::vector<std::int64_t>>(&attribute->value)) {
        for (const auto size : *wholes) {
            dims.push_back({std::max<std::int64_t>(size, -1), {}});
        }
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute->value)) {
        for (const auto& text : *texts) {
            Dim dim;
            std::from_chars(text.data(), text.data() + text.size(), dim.value);
            dim.value = std::max<std::int64_t>(dim.value, -1);
            dims.push_back(dim);
        }
    } else {
        return std::nullopt;
    }
    return dims;
}
Types viewed(const Look& look) {
    auto dims = stated(look.op, look.op.type == "reshape" ? "shape" : "size");
    const auto from = look.type(0).shape();
    const auto* texts = look.op.attribute(look.op.type == "reshape" ? "shape" : "size");
    if (dims && from && texts != nullptr &&
        std::holds_alternative<std::vector<std::int64_t>>(texts->value)) {
        std::int64_t known = 1;
        Dim* hole = nullptr;
        for (auto& dim : *dims) {
            (dim.value < 0 ? hole = &dim : nullptr);
            known *= dim.value < 0 ? 1 : dim.value;
        }
        if (hole != nullptr && known > 0) {
            hole->value = static_cast<std::int64_t>(element_count(*from)) / known;
        }
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types expanded(const Look& look) {
    auto dims = stated(look.op, "size");
    const auto from = look.dims(0);
    for (std::size_t i = 0; dims && from && i < from->size() && i < dims->size(); ++i) {
        auto& dim = (*dims)[dims->size() - 1 - i];
        dim = dim.value < 0 && (*from)[from->size() - 1 - i].value != 1
                  ? (*from)[from->size() - 1 - i]
                  : dim;
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types flattened(const Look& look) {
    const auto from = look.dims(0);
    Dims dims;
    if (from) {
        const auto rank = static_cast<std::int64_t>(from->size());
        auto begin = look.op.integer("start_dim", 0);
        auto end = look.op.integer("end_dim", -1);
        begin += begin < 0 ? rank : 0;
        end += end < 0 ? rank : 0;
        dims = rank == 0 ? std::vector<Dim>{{1, {}}} : std::vector<Dim>();
        std::int64_t joined = 1;
        for (std::int64_t i = 0; i < rank; ++i) {
            const auto& dim = (*from)[static_cast<std::size_t>(i)];
            if (i < begin || i > end) {
                dims->push_back(dim);
                continue;
            }
            joined = joined < 0 || dim.value < 0 ? -1 : joined * dim.value;
            if (i == end) {
                dims->push_back({joined, {}});
            }
        }
    } else if (look.op.integer("end_dim", -1) == -1 && look.op.integer("start_dim", 0) >= 0) {
        dims = unknown_dims(static_cast<std::size_t>(
            std::min<std::int64_t>(look.op.integer("start_dim", 0), 8) + 1));
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types permuted(const Look& look) {
    const auto from = look.dims(0);
    const auto order = look.op.integers("dims");
    auto dims = unknown_dims(order.size());
    for (std::size_t i = 0; from && from->size() == order.size() && i < order.size(); ++i) {
        const auto at =
            order[i] < 0 ? order[i] + static_cast<std::int64_t>(from->size()) : order[i];
        if (at >= 0 && at < static_cast<std::int64_t>(from->size())) {
            (*dims)[i] = (*from)[static_cast<std::size_t>(at)];
        }
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types swapped(const Look& look) {
    auto dims = look.dims(0);
    if (dims) {
        const auto rank = static_cast<std::int64_t>(dims->size());
        const bool named = look.op.type == "swapaxes";
        const bool last = look.op.type == "mT";
        auto a = look.op.integer(named ? "axis0" : "dim0", last ? -2 : 0);
        auto b = look.op.integer(named ? "axis1" : "dim1", last ? -1 : 1);
        a += a < 0 ? rank : 0;
        b += b < 0 ? rank : 0;
        if (a >= 0 && a < rank && b >= 0 && b < rank) {
            std::swap((*dims)[static_cast<std::size_t>(a)], (*dims)[static_cast<std::size_t>(b)]);
        }
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types unsqueezed(const Look& look) {
    auto dims = look.dims(0);
    if (dims) {
        const auto at = look.axis(0, dims->size() + 1);
        if (at >= 0 && at <= static_cast<std::int64_t>(dims->size())) {
            dims->insert(dims->begin() + at, Dim{1, {}});
        }
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types squeezed(const Look& look) {
    auto dims = look.dims(0);
    if (dims && look.op.overload == "dim") {
        const auto at = look.axis(0, dims->size());
        const bool inside = at >= 0 && at < static_cast<std::int64_t>(dims->size());
        if (inside && (*dims)[static_cast<std::size_t>(at)].value == 1) {
            dims->erase(dims->begin() + at);
        } else if (inside && (*dims)[static_cast<std::size_t>(at)].value < 0) {
            dims.reset();
        }
    } else {
        dims.reset();
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types joined(const Look& look) {
    auto made = look.type(0);
    if (made.kind == Type::Kind::sequence) {
        return {made.element.empty() ? Type() : tensor(made.element[0].dtype, std::nullopt)};
    }
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < look.op.inputs.size(); ++i) {
        const auto type = look.type(i);
        made.dtype = made.dtype == DType::undefined ? type.dtype
                     : type.dtype == DType::undefined
                         ? made.dtype
                         : promoted(made.dtype, false, type.dtype, false);
        // A list of nothing counts for none, whatever the others look like.
        const bool blank = made.dims && made.dims->size() == 1 && (*made.dims)[0].value == 0;
        made.dims = made.dims && !blank ? made.dims : type.dims;
    }
    if (!made.dims) {
        return {made};
    }
    const bool stacked = look.op.type == "stack";
    const auto at = look.axis(0, made.dims->size() + (stacked ? 1 : 0));
    if (stacked) {
        if (at >= 0 && at <= static_cast<std::int64_t>(made.dims->size())) {
            made.dims->insert(made.dims->begin() + at,
                              Dim{static_cast<std::int64_t>(look.op.inputs.size()), {}});
        }
        return {made};
    }
    for (std::size_t i = 0; i < look.op.inputs.size() && sum >= 0; ++i) {
        const auto dims = look.dims(i);
        const bool known = dims && at >= 0 && at < static_cast<std::int64_t>(dims->size()) &&
                           (*dims)[static_cast<std::size_t>(at)].value >= 0;
        sum = known ? sum + (*dims)[static_cast<std::size_t>(at)].value : -1;
    }
    made.dims = with(std::move(made.dims), at, Dim{sum, {}});
    return {made};
}
Types parts(const Look& look) {
    auto made = look.type(0);
    if (made.dims) {
        const auto at = look.axis(0, made.dims->size());
        if (look.op.type == "unbind") {
            if (at >= 0 && at < static_cast<std::int64_t>(made.dims->size())) {
                made.dims->erase(made.dims->begin() + at);
            }
        } else {
            const auto size = at >= 0 && at < static_cast<std::int64_t>(made.dims->size())
                                  ? (*made.dims)[static_cast<std::size_t>(at)].value
                                  : -1;
            const auto count = static_cast<std::int64_t>(look.op.outputs.size());
            made.dims = with(std::move(made.dims), at,
                             size >= 0 && look.op.type == "chunk" && count > 0 && size % count == 0
                                 ? Dim{size / count, {}}
                                 : Dim{});
        }
    }
    return Types(look.op.outputs.size(), made);
}
Types sliced(const Look& look) {
    auto made = look.type(0);
    if (made.dims) {
        const auto at = look.axis(0, made.dims->size());
        const bool all = look.op.attribute("start") == nullptr &&
                         look.op.attribute("end") == nullptr &&
                         look.op.attribute("step") == nullptr && look.op.inputs.size() == 1;
        made.dims = all ? made.dims : with(std::move(made.dims), at, Dim{});
    }
    return {made};
}
Types selected(const Look& look) {
    auto made = look.type(0);
    if (made.dims) {
        const auto at = look.axis(0, made.dims->size());
        if (at >= 0 && at < static_cast<std::int64_t>(made.dims->size())) {
            made.dims->erase(made.dims->begin() + at);
        }
    }
    return {made};
}
Types picked(const Look& look) {  // index_select
    auto made = look.type(0);
    if (made.dims) {
        const auto axis = look.axis(0, made.dims->size());  // before the dimensions are moved
        made.dims = with(std::move(made.dims), axis, Dim{});
    }
    return {made};
}
Types gathered(const Look& look) {
    return {tensor(look.dtype(0), look.dims(1))};
}

}  // namespace trocar::aten
