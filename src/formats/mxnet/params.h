#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trocar/tensor.h"

namespace trocar::mxnet {

// MXNet's number of an element type. Types that DType has no name for get numbers from 1000 on.
DType dtype_of(std::int64_t type_flag);

struct NamedArray {
    std::string name;   // "arg:conv0_weight", "aux:bn0_moving_mean"
    Constant constant;  // an undefined one for an array without elements ("none")
    bool is_none = false;
};

// Does a file of arrays begin like this?
bool begins_arrays(Bytes head);

// The arrays of a .params file, dense ones as views of its bytes, which `owner` keeps alive; row
// sparse and CSR arrays become sparse constants. `where` names the file in messages. Throws
// Error(input) on a broken file, Error(unsupported) on kinds of storage that are not known.
std::vector<NamedArray> read_arrays(Bytes bytes, const std::shared_ptr<const void>& owner,
                                    const std::string& where);

}  // namespace trocar::mxnet
