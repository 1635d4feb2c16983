#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "formats/executorch/program_generated.h"
#include "trocar/graph.h"

// Element types, memory formats and properties, as files have them and as Trocar calls them.
namespace trocar::executorch {

// Types that no DType names are numbers from here on.
inline constexpr std::int32_t foreign_dtype = 1000;
DType to_dtype(fb::ScalarType type);
fb::ScalarType from_dtype(DType dtype);  // throws Error(unsupported)

// "float32", "contiguous_format": torch's own names; the number for one without a name.
std::string scalar_type_name(std::int64_t number);
std::optional<std::int64_t> scalar_type_number(std::string_view name);
std::string memory_format_name(std::int64_t number);
std::optional<std::int64_t> memory_format_number(std::string_view name);

// Domains of ops that are no kernels.
inline constexpr const char* delegate_domain = "delegate";
inline constexpr const char* instruction_domain = "executorch";

// Keys of Tensor::metadata.
namespace key {
inline constexpr const char* memory = "memory";      // "1:4096": which memory, and where in it
inline constexpr const char* order = "dim_order";    // "0,2,3,1": dimensions from outer to inner
inline constexpr const char* at_most = "at most";    // the shape that an open one may have
inline constexpr const char* state = "kind";         // "state": kept from run to run
inline constexpr const char* device = "device";      // where it is not the host
inline constexpr const char* external = "external";  // "true": its elements are in another file
}  // namespace key

// The form of a constant that stands for a tensor without data.
class NoData final : public StoredForm {
public:
    std::string text() const override { return "no data"; }
    std::size_t bytes() const override { return 0; }
};

template <class T>
std::string_view text_of(const T* text) {
    return text != nullptr ? std::string_view(text->c_str(), text->size()) : std::string_view();
}
template <class T>
auto size_of(const T* vector) {
    return vector != nullptr ? vector->size() : 0U;
}

// An item of a list. Those of 8 bytes need not be aligned in a file.
template <class T>
T item_of(const flatbuffers::Vector<T>* vector, flatbuffers::uoffset_t place) {
    T item{};
    std::memcpy(&item, vector->Data() + place * sizeof(T), sizeof(T));
    return item;
}

}  // namespace trocar::executorch
