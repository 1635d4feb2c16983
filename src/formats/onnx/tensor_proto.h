#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/external.h"
#include "formats/onnx/rope.h"
#include "formats/onnx/wire.h"
#include "trocar/graph.h"

// TensorProto and SparseTensorProto: constants in the file.
namespace trocar::onnx {

using FilePtr = std::shared_ptr<const File>;

struct StoredTensor {
    std::string_view name;
    std::string_view doc;
    std::vector<Property> metadata;
    Constant constant;
};

// `label` names the tensor in messages when it has no name. Data is viewed where it lies in the
// order of memory, and decoded on first use otherwise; external data is mapped and checked.
StoredTensor read_tensor(const FilePtr& file, Bytes message, ExternalFiles& external,
                         std::string_view label);
StoredTensor read_sparse(const FilePtr& file, Bytes message, ExternalFiles& external,
                         std::string_view label);

// Where a TensorProto says its data lies, when that is outside; the length is 0 when it does not
// say.
std::optional<ExternalData> read_external_place(const File& file, Bytes message);

// Says where the data of a dense constant shall lie: nullopt, in the message itself.
using Placement = std::function<std::optional<ExternalData>(const Constant&)>;

// Leaves data where it was.
std::optional<ExternalData> placed_as_read(const Constant& constant);

// Is the data to lie where it was read from?
bool stays(const Constant& constant, const Placement& place);

// A constant over the bytes it was read from, if any. No name: it keeps the one it has. Throws
// Error(unsupported) where the element type has no form that is known here.
Rope write_tensor(const Constant& constant, std::optional<std::string_view> name,
                  const Placement& place, Bytes base = {});
Rope write_sparse(const Constant& constant, std::optional<std::string_view> name,
                  const Placement& place, Bytes base = {});

}  // namespace trocar::onnx
