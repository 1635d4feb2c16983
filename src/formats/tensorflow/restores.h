#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/tensorflow/library.h"

namespace trocar::tensorflow {

// The tensors of a checkpoint that variables get when a SavedModel is restored: keys by the names
// of the variables' nodes. `restore` names the node that restores; it calls a function that reads
// the checkpoint and assigns. Empty where it is of another form.
std::map<std::string, std::string> restored_keys(const FilePtr& file,
                                                 const std::vector<Node>& nodes,
                                                 const Library& library,
                                                 const std::string& restore);

}  // namespace trocar::tensorflow
