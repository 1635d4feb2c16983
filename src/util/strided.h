#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trocar/tensor.h"

namespace trocar {

// A tensor whose elements lie in a storage at steps of their own, as torch describes it: element
// (i, j) is at offset + i × strides[0] + j × strides[1], counted in elements.
struct Strided {
    DType dtype = DType::undefined;
    Shape shape = {};
    std::vector<std::int64_t> strides = {};  // none: without gaps, the last dimension innermost
    std::int64_t offset = 0;
};

// What a file stores tensors in. `owner` keeps the bytes alive.
struct Storage {
    Bytes bytes;
    std::shared_ptr<const void> owner;
};

struct StridedConstant {
    Constant constant;
    // Equal for tensors that are the same elements of the same storage, told apart by its name.
    std::string identity;
};

// The tensor as a constant: a view where the elements lie in order, else gathered when they are
// asked for. `storage_name` goes into the identity. `fail` gets a sentence and throws; `absent`
// is what stands for elements that a storage without bytes should have.
StridedConstant strided_constant(const Strided& tensor, const Storage& storage,
                                 const std::string& storage_name,
                                 const std::function<void(const std::string&)>& fail,
                                 const std::function<Constant()>& absent);

}  // namespace trocar
