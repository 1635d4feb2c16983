#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/tensorflow/types.h"
#include "trocar/graph.h"

namespace trocar::tensorflow {

using FilePtr = std::shared_ptr<const File>;

// A node as the file has it, before its inputs are found.
struct Node {
    OpSpec spec;                        // without inputs and outputs
    std::vector<std::string> inputs;    // "name", "name:1"; in functions "name:arg:0"
    std::vector<std::string> controls;  // nodes that must have run before
    // Of its results, as far as the file declares them.
    std::vector<std::optional<std::vector<Dim>>> shapes;
    Bytes bytes;
};

Node read_node(const FilePtr& file, Bytes message, int depth);

// The type of a result of a node.
Type type_of(const Node& node, std::size_t slot);

// The value of an attribute. Types are texts by TensorFlow's names, shapes lists of integers (-1:
// not known), functions texts: their names.
Attribute read_attribute(const FilePtr& file, std::string name, Bytes message, int depth);

// A key of a map with the message of its value.
struct Entry {
    std::string key;
    Bytes value;
};
Entry read_entry(const FilePtr& file, Bytes message);

}  // namespace trocar::tensorflow
