#pragma once

#include <cstdint>

// The field numbers of ONNX's messages (IR version 14).
namespace trocar::onnx::schema {

using Number = std::uint32_t;

namespace model {
constexpr Number ir_version = 1, producer = 2, producer_version = 3, domain = 4, version = 5,
                 doc = 6, graph = 7, opset = 8, metadata = 14, training = 20, function = 25,
                 configuration = 26;
}
namespace graph {
constexpr Number node = 1, name = 2, initializer = 5, doc = 10, input = 11, output = 12,
                 value_info = 13, quantization = 14, sparse_initializer = 15, metadata = 16;
}
namespace node {
constexpr Number input = 1, output = 2, name = 3, type = 4, attribute = 5, doc = 6, domain = 7,
                 overload = 8, metadata = 9;
}
namespace attribute {
constexpr Number name = 1, f = 2, i = 3, s = 4, t = 5, g = 6, floats = 7, ints = 8, strings = 9,
                 tensors = 10, graphs = 11, type_proto = 14, type_protos = 15, kind = 20,
                 reference = 21, sparse = 22, sparses = 23;
}
// AttributeProto.AttributeType: what `attribute::kind` holds.
enum class AttributeKind : std::int64_t {
    undefined,
    f,
    i,
    s,
    t,
    g,
    floats,
    ints,
    strings,
    tensors,
    graphs,
    sparse,
    sparses,
    type_proto,
    type_protos,
};
namespace tensor {
constexpr Number dims = 1, dtype = 2, float_data = 4, int32_data = 5, string_data = 6,
                 int64_data = 7, name = 8, raw_data = 9, double_data = 10, uint64_data = 11,
                 doc = 12, external = 13, location = 14, metadata = 16;
constexpr std::int64_t location_external = 1;
}  // namespace tensor
namespace sparse {
constexpr Number values = 1, indices = 2, dims = 3;
}
namespace value_info {
constexpr Number name = 1, type = 2, doc = 3, metadata = 4;
}
namespace type {
constexpr Number tensor = 1, sequence = 4, map = 5, denotation = 6, opaque = 7, sparse = 8,
                 optional = 9;
// Inside tensor and sparse; sequence and optional have only `element`; map has key and value.
constexpr Number element = 1, shape = 2, map_key = 1, map_value = 2;
}  // namespace type
namespace shape {
constexpr Number dim = 1, dim_value = 1, dim_symbol = 2;
}
namespace opset {
constexpr Number domain = 1, version = 2;
}
namespace property {
constexpr Number key = 1, value = 2;
}
namespace annotation {
constexpr Number tensor = 1, parameter = 2;
}
namespace function {
constexpr Number name = 1, input = 4, output = 5, attribute = 6, node = 7, doc = 8, opset = 9,
                 domain = 10, attribute_default = 11, value_info = 12, overload = 13, metadata = 14;
}
// Files of values: SequenceProto and OptionalProto have the same fields.
namespace sequence {
constexpr Number name = 1, kind = 2, tensor = 3, sparse = 4, sequence = 5, map = 6, optional = 7;
}
namespace map {
constexpr Number name = 1, key_type = 2, keys = 3, string_keys = 4, values = 5;
}

}  // namespace trocar::onnx::schema
