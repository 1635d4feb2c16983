#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "trocar/graph.h"
#include "trocar/tensor.h"

namespace trocar::pt2 {

// torch's number of an element type. Types that DType has no name for get numbers from 1000 on.
DType dtype_of(std::int64_t scalar_type);
// "float32", "channels_last", "sparse_coo": torch's own names; the number for one without a name.
std::string scalar_type_name(std::int64_t number);
std::string memory_format_name(std::int64_t number);
std::string layout_name(std::int64_t number);
std::string device_name(const JsonPlace& place, const Json& device);  // "cpu", "cuda:0"

// A size that may be symbolic.
Dim read_dim(const JsonPlace& place, const Json& sym_int);

// What a file says of a tensor.
struct TensorMeta {
    Type type;
    std::vector<Dim> strides;
    Dim storage_offset;
    std::vector<Property> metadata;  // device, strides and the like where they are not the usual
};
TensorMeta read_tensor_meta(const JsonPlace& place, const Json& meta);

}  // namespace trocar::pt2
