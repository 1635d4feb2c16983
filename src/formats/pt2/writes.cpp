#include "formats/pt2/writes.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace trocar::pt2 {

namespace {

using LastRead = std::unordered_map<std::string, std::size_t>;

void note_names(const Json& json, std::size_t number, LastRead& last_read, int depth) {
    constexpr int deepest = 64;
    if (depth > deepest) {
        return;  // no argument lies so deep
    }
    if (json.is_object()) {
        for (const auto& [key, value] : json.items()) {
            if ((key == "name" || key == "as_name") && value.is_string()) {
                last_read[value.string()] = number;
            } else {
                note_names(value, number, last_read, depth + 1);
            }
        }
    } else if (json.is_array()) {
        for (const auto& value : json) {
            note_names(value, number, last_read, depth + 1);
        }
    }
}

}  // namespace

Writes::Writes(const Json& graph) {
    if (const auto* nodes = graph.find("nodes"); nodes != nullptr && nodes->is_array()) {
        for (std::size_t i = 0; i < nodes->size(); ++i) {
            if (const auto* inputs = (*nodes)[i].find("inputs")) {
                note_names(*inputs, i, last_read_, 0);
            }
        }
    }
    if (const auto* outputs = graph.find("outputs")) {
        note_names(*outputs, std::numeric_limits<std::size_t>::max(), last_read_, 0);
    }
}

bool Writes::in_place(const OpSpec& spec) {
    const auto& type = spec.type;
    return spec.domain.empty() && type.size() > 1 && type.back() == '_' &&
           type[type.size() - 2] != '_';
}

void Writes::name(TensorId id, const std::string& name) {
    names_[id].push_back(name);
}

TensorId Writes::root(TensorId id) const {
    const auto found = roots_.find(id);
    return found == roots_.end() ? id : found->second;
}

void Writes::view(TensorId output, TensorId viewed) {
    const auto of = root(viewed);
    roots_[output] = of;
    auto& sharing = sharing_[of];
    if (sharing.empty()) {
        sharing.push_back(of);
    }
    sharing.push_back(output);
}

TensorId Writes::write(std::size_t number, TensorId written, TensorId made,
                       std::vector<std::string>& renamed) {
    const auto of = root(written);
    auto& sharing = sharing_[of];
    // Those that nobody reads any more need never be looked at again.
    const auto dead = [&](TensorId id) {
        const auto& names = names_[id];
        return id != written && std::none_of(names.begin(), names.end(), [&](const auto& name) {
                   const auto found = last_read_.find(name);
                   return found != last_read_.end() && found->second > number;
               });
    };
    sharing.erase(std::remove_if(sharing.begin(), sharing.end(), dead), sharing.end());
    const bool shared =
        std::any_of(sharing.begin(), sharing.end(), [&](TensorId id) { return id != written; });
    auto names = std::move(names_[written]);
    names_.erase(written);
    renamed = names;
    auto& of_made = names_[made];
    of_made.insert(of_made.end(), names.begin(), names.end());
    std::erase(sharing, written);
    if (!shared) {
        return TensorId::none;
    }
    roots_[made] = of;
    sharing.push_back(made);
    return of;
}

bool makes_view(const OpSpec& spec) {
    static const std::unordered_set<std::string_view> types{"adjoint",
                                                            "alias",
                                                            "as_strided",
                                                            "broadcast_to",
                                                            "chunk",
                                                            "contiguous",
                                                            "detach",
                                                            "diagonal",
                                                            "dropout",
                                                            "expand",
                                                            "expand_as",
                                                            "feature_dropout",
                                                            "flatten",
                                                            "hsplit",
                                                            "imag",
                                                            "lift_fresh",
                                                            "matrix_H",
                                                            "mH",
                                                            "mT",
                                                            "moveaxis",
                                                            "movedim",
                                                            "narrow",
                                                            "numpy_T",
                                                            "permute",
                                                            "ravel",
                                                            "real",
                                                            "reshape",
                                                            "reshape_as",
                                                            "select",
                                                            "slice",
                                                            "split",
                                                            "split_with_sizes",
                                                            "squeeze",
                                                            "swapaxes",
                                                            "swapdims",
                                                            "t",
                                                            "tensor_split",
                                                            "to",
                                                            "transpose",
                                                            "type_as",
                                                            "unbind",
                                                            "unflatten",
                                                            "unfold",
                                                            "unsqueeze",
                                                            "view",
                                                            "view_as",
                                                            "view_as_complex",
                                                            "view_as_real",
                                                            "vsplit",
                                                            "_unsafe_view",
                                                            "_reshape_alias"};
    return spec.domain.empty() && types.contains(spec.type);
}

}  // namespace trocar::pt2
