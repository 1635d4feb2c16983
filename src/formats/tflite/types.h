#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/tflite/model_generated.h"
#include "trocar/graph.h"

// Element types, names and properties: what files of this kind have and Trocar calls otherwise.
namespace trocar::tflite {

// Types that no DType names (RESOURCE, VARIANT, those of the future) are numbers from here on.
inline constexpr std::int32_t foreign_dtype = 1000;
DType to_dtype(fb::TensorType type);
fb::TensorType from_dtype(DType dtype);  // throws Error(unsupported)

// Keys of Tensor::metadata and OpSpec::metadata: what a graph has no other place for.
namespace key {
inline constexpr std::string_view name = "name";          // in the file, where it is not unique
inline constexpr std::string_view variable = "variable";  // "true": keeps its value between runs
inline constexpr std::string_view shape = "shape";  // "1x8": where a dimension is declared open
inline constexpr std::string_view ranked = "has_rank";
inline constexpr std::string_view version = "version";  // of an op
inline constexpr std::string_view options = "options";  // the table, where it is an unusual one
inline constexpr std::string_view custom = "custom_options";  // as text; shown, never written
}  // namespace key

std::string_view property(const std::vector<Property>& properties, std::string_view key);

// A name for the tensor at `place` that no other of the graph has: the file's own where it can be.
std::string unique_name(const Graph& graph, std::string_view in_file, std::size_t place);
// The name that the file had, unless the tensor was renamed since.
std::string file_name(const Tensor& tensor);

// The form of a constant that stands for a tensor without data: a variable, or no elements.
class NoData final : public StoredForm {
public:
    std::string text() const override { return "no data"; }
    std::size_t bytes() const override { return 0; }
};

// The texts of a string tensor, and the bytes that stand for them in a file.
Constant read_strings(Shape shape, Bytes bytes);  // throws Error(input)
std::string write_strings(const std::vector<std::string>& texts);

template <class T>
std::string_view text_of(const T* text) {
    return text != nullptr ? std::string_view(text->c_str(), text->size()) : std::string_view();
}
template <class T>
auto size_of(const T* vector) {
    return vector != nullptr ? vector->size() : 0U;
}
// Does a table hold fields beyond the first `known`?
inline constexpr unsigned model_fields = 10, subgraph_fields = 6, tensor_fields = 11,
                          operator_fields = 14, quantization_fields = 7;
template <class T>
bool has_more(const T& table, unsigned known) {
    const auto& plain = reinterpret_cast<const flatbuffers::Table&>(table);
    const auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(plain.GetVTable());
    for (unsigned at = 4 + 2 * known; at + 2 <= size; at += 2) {
        if (plain.GetOptionalFieldOffset(static_cast<flatbuffers::voffset_t>(at)) != 0) {
            return true;
        }
    }
    return false;
}
inline Bytes bytes_of(const flatbuffers::Vector<std::uint8_t>* vector) {
    return vector != nullptr ? std::as_bytes(std::span(vector->data(), vector->size())) : Bytes();
}
inline std::vector<std::int64_t> integers_of(const flatbuffers::Vector<std::int32_t>* vector) {
    return vector != nullptr ? std::vector<std::int64_t>(vector->begin(), vector->end())
                             : std::vector<std::int64_t>();
}

}  // namespace trocar::tflite
