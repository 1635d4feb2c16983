#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trocar::torchscript {

// What one overload of an op takes and returns. Kinds are those of schemas.txt.
struct Schema {
    struct Argument {
        std::string name;
        std::string kind;
        bool optional = false;
        bool written = false;
        bool viewed = false;   // a result is a view of it
        bool by_name = false;  // only
    };
    std::string overload;
    std::vector<Argument> arguments;
    std::vector<std::string> results;
};

// The overloads of "aten::add", in the order in which torch tries them; none: not known.
const std::vector<Schema>& schemas(const std::string& op);

// Text of schemas.txt, which the build puts into the library.
extern const char* const embedded_schemas;

}  // namespace trocar::torchscript
