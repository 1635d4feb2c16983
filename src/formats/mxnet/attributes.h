#pragma once

#include <string_view>

#include "trocar/graph.h"

namespace trocar::mxnet {

// MXNet writes every attribute as a text of Python's: "(3, 3)" is a list of numbers, "64" and "0.9"
// are numbers, "True" and "False" 1 and 0. What is none of these stays a text.
Attribute::Value read_attribute(std::string_view text);

}  // namespace trocar::mxnet
