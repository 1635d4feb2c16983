#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tflite/model_generated.h"
#include "formats/tflite/schema.h"
#include "trocar/graph.h"

// The options of ops as attributes, by the names that the schema gives them.
namespace trocar::tflite {

// The attributes of an options table that was verified. `graph` gives the graph behind a subgraph's
// number. Fields that the schema does not have become attributes without a value.
std::vector<Attribute> read_options(
    const Options& options, const flatbuffers::Table& table,
    const std::function<std::shared_ptr<Graph>(std::int64_t)>& graph);

// Writes such a table. `number` gives the number of a graph. Throws Error(unsupported) on
// values that do not fit.
flatbuffers::Offset<void> write_options(flatbuffers::FlatBufferBuilder& builder,
                                        const Options& options,
                                        const std::vector<Attribute>& attributes,
                                        const std::string& where,
                                        const std::function<std::int64_t(const Graph&)>& number);
// Is a table to be written: does it have no fields at all, or an attribute for one of them?
bool is_given(const Options& options, const std::vector<Attribute>& attributes);
// Throws where an attribute is neither an option nor among `others`.
void check_attributes(const Options* options, const std::vector<Attribute>& attributes,
                      std::span<const std::string_view> others, const std::string& where);

// What a flexbuffer holds, as text; empty where the bytes are none.
std::string flexbuffer_text(Bytes bytes);

}  // namespace trocar::tflite
