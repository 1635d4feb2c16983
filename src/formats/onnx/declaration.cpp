#include "formats/onnx/declaration.h"

#include <utility>

#include "formats/onnx/schema.h"

namespace trocar::onnx {

using namespace schema;

namespace {

DType to_dtype(std::int64_t number) {
    return static_cast<DType>(static_cast<int>(number));
}

Dim read_dim(const File& file, Bytes message) {
    Dim dim;
    for (Fields at(file, message); at.next();) {
        if (at.number() == shape::dim_value) {
            dim = {at.integer(), {}};
        } else if (at.number() == shape::dim_symbol) {
            dim = {-1, std::string(at.text())};
        }
    }
    // A negative size is what some exporters write for an unknown one.
    dim.value = dim.value < 0 ? -1 : dim.value;
    return dim;
}

std::vector<Dim> read_dims(const File& file, Bytes message) {
    std::vector<Dim> dims;
    for (Fields at(file, message); at.next();) {
        if (at.number() == shape::dim) {
            dims.push_back(read_dim(file, at.bytes()));
        }
    }
    return dims;
}

Type read_tensor_type(const File& file, Bytes message, Type::Kind kind) {
    Type type;
    type.kind = kind;
    for (Fields at(file, message); at.next();) {
        if (at.number() == type::element) {
            type.dtype = to_dtype(at.integer());
        } else if (at.number() == type::shape) {
            type.dims = read_dims(file, at.bytes());
        }
    }
    return type;
}

Type read_nested(const File& file, Bytes message, Type::Kind kind, int depth) {
    Type type;
    type.kind = kind;
    const auto inner = kind == Type::Kind::map ? type::map_value : type::element;
    for (Fields at(file, message, depth); at.next();) {
        if (at.number() == inner) {
            type.element.assign(1, read_type(file, at.bytes(), depth + 1));
        } else if (kind == Type::Kind::map && at.number() == type::map_key) {
            type.dtype = to_dtype(at.integer());
        }
    }
    return type;
}

constexpr std::pair<Number, Type::Kind> kinds[] = {
    {type::tensor, Type::Kind::tensor},
    {type::sequence, Type::Kind::sequence},
    {type::map, Type::Kind::map},
    {type::optional, Type::Kind::optional},
    {type::sparse, Type::Kind::sparse_tensor},
    {type::opaque, Type::Kind::opaque},
};

Rope write_dim(const Dim& dim) {
    Rope out;
    if (dim.value >= 0) {
        out.integer(shape::dim_value, dim.value);
    } else if (!dim.symbol.empty()) {
        out.text(shape::dim_symbol, dim.symbol);
    }
    return out;
}

// The message inside a type's field: a tensor's, a sequence's…
Rope write_inner(const Type& type) {
    Rope out;
    switch (type.kind) {
        case Type::Kind::tensor:
        case Type::Kind::sparse_tensor:
            out.integer(type::element, static_cast<int>(type.dtype));
            if (type.dims) {
                Rope dims;
                for (const auto& dim : *type.dims) {
                    dims.message(shape::dim, write_dim(dim));
                }
                out.message(type::shape, std::move(dims));
            }
            break;
        case Type::Kind::map:
            out.integer(type::map_key, static_cast<int>(type.dtype));
            [[fallthrough]];
        default:
            for (const auto& element : type.element) {
                out.message(type.kind == Type::Kind::map ? type::map_value : type::element,
                            write_type(element));
            }
    }
    return out;
}

}  // namespace

Type read_type(const File& file, Bytes message, int depth) {
    Type type;
    for (Fields at(file, message, depth); at.next();) {
        for (const auto& [number, kind] : kinds) {
            if (at.number() != number) {
                continue;
            }
            if (kind == Type::Kind::tensor || kind == Type::Kind::sparse_tensor) {
                type = read_tensor_type(file, at.bytes(), kind);
            } else {
                type = read_nested(file, at.bytes(), kind, depth + 1);
            }
        }
    }
    return type;
}

Rope write_type(const Type& type, Bytes base) {
    Rewrite message(base);
    if (type.kind != Type::Kind::unknown && type.kind != Type::Kind::opaque) {
        for (const auto& [number, kind] : kinds) {
            const bool wanted = kind == type.kind;
            message.list(number, wanted ? 1 : 0,
                         [number = number, &type](Rope& out, std::size_t, const Fields*) {
                             out.message(number, write_inner(type));
                         });
        }
    }
    return message.finish();
}

Declaration read_declaration(const File& file, Bytes message, int depth) {
    Declaration result;
    for (Fields at(file, message, depth); at.next();) {
        switch (at.number()) {
            case value_info::name:
                result.name = at.text();
                break;
            case value_info::type:
                result.type = read_type(file, at.bytes(), depth + 1);
                break;
            case value_info::doc:
                result.doc = at.text();
                break;
            case value_info::metadata:
                result.metadata.push_back(read_property(file, at.bytes()));
                break;
            default:
                break;
        }
    }
    return result;
}

Rope write_declaration(std::string_view name, const Type& type, Bytes base) {
    const File file{"", base, nullptr, {}, false};
    Rewrite message(base);
    message.text(value_info::name, name);
    const bool same = !base.empty() && read_declaration(file, base, 0).type == type;
    if (!same) {
        const bool known = type.kind != Type::Kind::unknown;
        message.list(
            value_info::type, known ? 1 : 0, [&](Rope& out, std::size_t, const Fields* slot) {
                out.message(value_info::type, write_type(type, slot ? slot->bytes() : Bytes()));
            });
    }
    return message.finish();
}

Property read_property(const File& file, Bytes message) {
    Property result;
    for (Fields at(file, message); at.next();) {
        if (at.number() == property::key) {
            result.key = at.text();
        } else if (at.number() == property::value) {
            result.value = at.text();
        }
    }
    return result;
}

OpSet read_opset(const File& file, Bytes message) {
    OpSet result;
    for (Fields at(file, message); at.next();) {
        if (at.number() == opset::domain) {
            result.domain = at.text();
        } else if (at.number() == opset::version) {
            result.version = at.integer();
        }
    }
    return result;
}

namespace {

Rope write(const Property& value) {
    Rope out;
    out.text(property::key, value.key);
    out.text(property::value, value.value);
    return out;
}

Rope write(const OpSet& value) {
    Rope out;
    out.text(opset::domain, value.domain);
    out.integer(opset::version, value.version);
    return out;
}

template <class T, class Read>
void rewrite_list(Rewrite& message, std::uint32_t number, std::vector<T> values, Read read) {
    const auto count = values.size();
    message.list(
        number, count,
        [number, read, all = std::move(values)](Rope& out, std::size_t k, const Fields* slot) {
            if (slot != nullptr && read(slot->file(), slot->bytes()) == all[k]) {
                out.borrow(slot->whole());
            } else {
                out.message(number, write(all[k]));
            }
        });
}

}  // namespace

void rewrite_properties(Rewrite& message, std::uint32_t number, std::vector<Property> properties) {
    rewrite_list(message, number, std::move(properties), read_property);
}

void rewrite_opsets(Rewrite& message, std::uint32_t number, std::vector<OpSet> opsets) {
    rewrite_list(message, number, std::move(opsets), read_opset);
}

}  // namespace trocar::onnx
