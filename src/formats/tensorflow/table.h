#pragma once

#include <map>
#include <string>

#include "trocar/tensor.h"

namespace trocar::tensorflow {

// The keys and values of a sorted table as LevelDB lays it out: blocks of entries whose keys leave
// out what they share with the key before, an index of the blocks, and a footer that finds it.
// Throws Error(input) on a broken table, Error(unsupported) on blocks that are packed in a way that
// is not known.
std::map<std::string, std::string> read_table(Bytes file, const std::string& where);

}  // namespace trocar::tensorflow
