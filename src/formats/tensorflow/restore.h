#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/tensorflow/node_reader.h"

namespace trocar::tensorflow {

// Which tensor of the checkpoint each variable of a SavedModel is given, by the names of the ops
// that stand for variables. That is what the function does that restores them: several variables
// may have one name in the graph of objects, and their ops then other ones.
// `nodes`: those of the graph; `library`: its functions. What is not as TensorFlow 2 writes it is
// left out.
std::map<std::string, std::string> restored_keys(const FilePtr& file,
                                                 const std::vector<Node>& nodes, Bytes library);

}  // namespace trocar::tensorflow
