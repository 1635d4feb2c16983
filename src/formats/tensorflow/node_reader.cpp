#include "formats/tensorflow/node_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "formats/tensorflow/result_types.h"
#include "formats/tensorflow/schema.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

std::vector<std::int64_t> sizes(const File& file, Bytes message) {
    std::vector<std::int64_t> result;
    for (const auto& dim : read_shape(file, message).value_or(std::vector<Dim>())) {
        result.push_back(dim.value);
    }
    return result;
}

std::string shape_words(const File& file, Bytes message) {
    return read_shape(file, message) ? fmt::format("{}", join(sizes(file, message), ","))
                                     : "unknown";
}

std::string function_name(const File& file, Bytes message) {
    std::string name;
    for (Fields at(file, message); at.next();) {
        if (at.number() == name_attrs::name) {
            name = at.text();
        }
    }
    return name;
}

// A list is of the kind of the field that it has; an empty one is of none.
Attribute::Value read_list(const FilePtr& file, Bytes message, int depth) {
    std::vector<std::int64_t> numbers;
    std::vector<float> reals;
    std::vector<std::string> texts;
    std::vector<Constant> tensors;
    for (Fields at(*file, message, depth); at.next();) {
        switch (at.number()) {
            case attr_list::s:
                texts.emplace_back(at.text());
                break;
            case attr_list::i:
            case attr_list::b:
                at.integers([&](std::uint64_t value) {
                    numbers.push_back(static_cast<std::int64_t>(value));
                });
                break;
            case attr_list::f:
                at.fixed32s(
                    [&](std::uint32_t bits) { reals.push_back(std::bit_cast<float>(bits)); });
                break;
            case attr_list::type:
                at.integers([&](std::uint64_t value) {
                    texts.push_back(dtype_name(static_cast<std::int64_t>(value)));
                });
                break;
            case attr_list::shape:
                texts.push_back(shape_words(*file, at.bytes()));
                break;
            case attr_list::tensor:
                tensors.push_back(read_tensor(file, at.bytes()));
                break;
            case attr_list::func:
                texts.push_back(function_name(*file, at.bytes()));
                break;
            default:
                break;
        }
    }
    if (!tensors.empty()) {
        return tensors;
    }
    if (!texts.empty()) {
        return texts;
    }
    if (!reals.empty()) {
        return reals;
    }
    return numbers;
}

}  // namespace

Entry read_entry(const FilePtr& file, Bytes message) {
    Entry result;
    for (Fields at(*file, message); at.next();) {
        if (at.number() == entry::key) {
            result.key = at.text();
        } else if (at.number() == entry::value) {
            result.value = at.bytes();
        }
    }
    return result;
}

Attribute read_attribute(const FilePtr& file, std::string name, Bytes message, int depth) {
    Attribute result{.name = std::move(name), .value = {}, .reference = {}, .source = {}};
    result.source.bytes = message;
    for (Fields at(*file, message, depth); at.next();) {
        switch (at.number()) {
            case attr_value::list:
                result.value = read_list(file, at.bytes(), depth + 1);
                break;
            case attr_value::s:
                result.value = std::string(at.text());
                break;
            case attr_value::i:
            case attr_value::b:
                result.value = at.integer();
                break;
            case attr_value::f:
                result.value = at.real();
                break;
            case attr_value::type:
                result.value = dtype_name(at.integer());
                break;
            case attr_value::shape:
                if (read_shape(*file, at.bytes())) {
                    result.value = sizes(*file, at.bytes());
                } else {
                    result.value = std::string("unknown");
                }
                break;
            case attr_value::tensor:
                try {
                    result.value = read_tensor(file, at.bytes());
                } catch (const Error& e) {  // of a type without elements: only the bytes are kept
                    if (e.fault() != Fault::unsupported) {
                        throw;
                    }
                }
                break;
            case attr_value::placeholder:
                result.reference = at.text();
                break;
            case attr_value::func:
                result.value = function_name(*file, at.bytes());
                break;
            default:
                break;
        }
    }
    return result;
}

Node read_node(const FilePtr& file, Bytes message, int depth) {
    Node node;
    node.bytes = message;
    for (Fields at(*file, message, depth); at.next();) {
        switch (at.number()) {
            case node_def::name:
                node.spec.name = at.text();
                break;
            case node_def::op:
                node.spec.type = at.text();
                break;
            case node_def::input: {
                const auto text = at.text();
                if (text.starts_with('^')) {
                    node.controls.emplace_back(text.substr(1));
                } else {
                    node.inputs.emplace_back(text);
                }
                break;
            }
            case node_def::device:
                if (!at.text().empty()) {
                    node.spec.metadata.push_back({"device", std::string(at.text())});
                }
                break;
            case node_def::attr: {
                const auto [key, value] = read_entry(file, at.bytes());
                if (key != "_output_shapes") {
                    node.spec.attributes.push_back(read_attribute(file, key, value, depth + 1));
                    break;
                }
                for (Fields list(*file, value); list.next();) {
                    if (list.number() != attr_value::list) {
                        continue;
                    }
                    for (Fields item(*file, list.bytes()); item.next();) {
                        if (item.number() == attr_list::shape) {
                            node.shapes.push_back(read_shape(*file, item.bytes()));
                        }
                    }
                }
                break;
            }
            default:
                break;
        }
    }
    std::sort(node.spec.attributes.begin(), node.spec.attributes.end(),
              [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
    if (!node.controls.empty()) {
        node.spec.metadata.push_back({"after", fmt::format("{}", join(node.controls, " "))});
    }
    return node;
}

Type type_of(const Node& node, std::size_t slot) {
    auto type = Type::tensor(result_type(node.spec, slot));
    if (slot < node.shapes.size()) {
        type.dims = node.shapes[slot];
    }
    return type.dtype == DType::undefined ? Type() : type;
}

}  // namespace trocar::tensorflow
