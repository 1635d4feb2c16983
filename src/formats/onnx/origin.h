#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trocar/graph.h"

namespace trocar::onnx {

// The module path and source lines of an op, as far as exporters left them in its name
// ("/layer1/layer1.0/conv1/Conv") and metadata (name scopes, stack trace, namespace).
Origin find_origin(std::string_view name, const std::vector<Property>& metadata);

// "/layer1/layer1.0/conv1/Conv" → "layer1.0.conv1"; empty when the name is no such path.
std::string module_of_name(std::string_view name);

// The texts of a Python list of strings: "['', 'layer1', \"it's\"]". Empty when it is not one.
std::vector<std::string> parse_python_strings(std::string_view text);

}  // namespace trocar::onnx
