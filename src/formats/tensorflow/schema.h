#pragma once

#include <cstdint>

// Numbers of fields in TensorFlow's messages, as far as they are read.
namespace trocar::tensorflow::schema {

using Number = std::uint32_t;

namespace graph_def {
constexpr Number node = 1, library = 2, version = 3, versions = 4;
}
namespace versions {
constexpr Number producer = 1;
}
namespace node_def {
constexpr Number name = 1, op = 2, input = 3, device = 4, attr = 5;
}
namespace entry {  // of every map
constexpr Number key = 1, value = 2;
}
namespace attr_value {
constexpr Number list = 1, s = 2, i = 3, f = 4, b = 5, type = 6, shape = 7, tensor = 8,
                 placeholder = 9, func = 10;
}
namespace attr_list {
constexpr Number s = 2, i = 3, f = 4, b = 5, type = 6, shape = 7, tensor = 8, func = 9;
}
namespace name_attrs {
constexpr Number name = 1, attr = 2;
}
namespace shape {
constexpr Number dim = 2, unknown_rank = 3;
}
namespace dim {
constexpr Number size = 1, name = 2;
}
namespace tensor {
constexpr Number dtype = 1, shape = 2, content = 4, floats = 5, doubles = 6, ints = 7, strings = 8,
                 complex64s = 9, int64s = 10, bools = 11, complex128s = 12, halves = 13,
                 uint32s = 16, uint64s = 17, float8s = 18;
}
namespace library {
constexpr Number function = 1;
}
namespace function_def {
constexpr Number signature = 1, node = 3, ret = 4, attr = 5;
}
namespace op_def {
constexpr Number name = 1, input_arg = 2, output_arg = 3, attr = 4, description = 6;
}
namespace arg_def {
constexpr Number name = 1, type = 3, type_attr = 4;
}
namespace saved_model {
constexpr Number schema_version = 1, meta_graph = 2;
}
namespace meta_graph {
constexpr Number info = 1, graph_def = 2, saver = 3, signature = 5, object_graph = 7;
}
namespace saver_def {
constexpr Number restore_op = 3;
}
namespace meta_info {
constexpr Number tags = 4, version = 5;
}
namespace signature_def {
constexpr Number inputs = 1, outputs = 2, method = 3;
}
namespace tensor_info {
constexpr Number name = 1, dtype = 2, shape = 3;
}
namespace object_graph {  // of a SavedModel, and of a checkpoint
constexpr Number node = 1;
}
namespace saved_object {
constexpr Number variable = 7;
}
namespace saved_variable {
constexpr Number dtype = 1, shape = 2, trainable = 3, name = 6;
}
namespace trackable {
constexpr Number attribute = 2;
}
namespace serialized_tensor {
constexpr Number name = 1, full_name = 2, key = 3;
}
namespace bundle_header {
constexpr Number shards = 1, endianness = 2;
}
namespace bundle_entry {
constexpr Number dtype = 1, shape = 2, shard = 3, offset = 4, size = 5, slices = 7;
}

}  // namespace trocar::tensorflow::schema
