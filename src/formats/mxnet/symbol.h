#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/mxnet/params.h"
#include "trocar/graph.h"

namespace trocar::mxnet {

// Arrays by the name of their variable, without "arg:" or "aux:".
struct Arrays {
    struct Entry {
        Constant constant;
        const char* kind = "parameter";  // or "buffer"
    };
    std::map<std::string, Entry> by_name;
};

// Makes a Graph of a symbol. Variables that have an array become constants, the others inputs; the
// heads become outputs. Subgraphs of control flow are attributes "subgraph0", "subgraph1"…, with
// inputs of their own.
Graph read_symbol(const JsonPlace& place, const Json& symbol, const Arrays& arrays, int depth = 0);

}  // namespace trocar::mxnet
