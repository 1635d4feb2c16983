#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/strided.h"

namespace trocar::torchscript {

// A tensor as a pickle describes it: its elements lie in a storage, which is a file of its own.
struct PickledTensor {
    Strided where;
    std::string storage;  // the file's name in its folder
    std::string device;
    bool requires_grad = false;
    // Of a quantised one: one scale and zero point, or tensors of them along an axis.
    bool quantized = false;
    double scale = 0;
    std::int64_t zero_point = 0;
    const struct Pickled* scales = nullptr;
    const struct Pickled* zero_points = nullptr;
    std::int64_t axis = 0;
};

// A value of a pickle. Values refer to one another by pointers into their Pickle, in any way,
// circles included.
struct Pickled {
    enum class Kind {
        none,
        truth,    // integer
        integer,  // integer
        real,     // real
        complex,  // real, imaginary
        text,     // text
        device,   // text
        list,     // items; text: what it is of ("int"), where the pickle says
        tuple,    // items; text: its class, where it has one
        dict,     // items: keys and values in turn; text: its type, where the pickle says
        tensor,   // tensor
        object,   // text: its class; items: names and values of its attributes in turn
        state,    // likewise of a class that restores itself: items[0] is what it saved
        global,   // text: what is neither of these until it is called
        storage,  // of a tensor, until it is one
    };
    Kind kind = Kind::none;
    std::int64_t integer = 0;
    double real = 0;
    double imaginary = 0;
    std::string text;
    std::vector<const Pickled*> items;
    std::shared_ptr<PickledTensor> tensor;  // never empty where the kind says so

    // Of an object; nullptr: it has no such attribute.
    const Pickled* attribute(std::string_view name) const;
};

// Reads a pickle as TorchScript writes them. Nothing is ever executed: the few names that may be
// called are known here, all others are refused.
class Pickle {
public:
    // `where` names the file in messages: "'model.pt': data.pkl". Throws Error(input) on what is
    // broken, Error(unsupported) on what TorchScript does not write.
    Pickle(Bytes bytes, std::string where);
    Pickle(const Pickle&) = delete;
    Pickle& operator=(const Pickle&) = delete;

    const Pickled& root() const { return *root_; }

private:
    friend class Unpickler;
    std::deque<Pickled> all_;
    const Pickled* root_ = nullptr;
};

// torch's number of an element type, and its name ("float32"); the number for one without a name.
DType dtype_of(std::int64_t scalar_type);
std::string scalar_type_name(std::int64_t number);
// "channels_last", "sparse_coo".
std::string memory_format_name(std::int64_t number);
std::string layout_name(std::int64_t number);

}  // namespace trocar::torchscript
