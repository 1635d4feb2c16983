#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/rope.h"
#include "formats/onnx/wire.h"
#include "trocar/graph.h"
#include "trocar/model.h"

// The small messages: types, declarations of tensors, properties, op sets. Each is read from its
// bytes, and written over them.
namespace trocar::onnx {

Type read_type(const File& file, Bytes message, int depth);
// A kind that has no form of its own here (unknown, opaque) keeps what `base` says.
Rope write_type(const Type& type, Bytes base = {});

struct Declaration {
    std::string_view name;
    Type type;
    std::string_view doc;
    std::vector<Property> metadata;
};
Declaration read_declaration(const File& file, Bytes message, int depth);
Rope write_declaration(std::string_view name, const Type& type, Bytes base = {});

Property read_property(const File& file, Bytes message);
OpSet read_opset(const File& file, Bytes message);

// The lists of these in a message that is written over its base.
void rewrite_properties(Rewrite& message, std::uint32_t number, std::vector<Property> properties);
void rewrite_opsets(Rewrite& message, std::uint32_t number, std::vector<OpSet> opsets);

}  // namespace trocar::onnx
