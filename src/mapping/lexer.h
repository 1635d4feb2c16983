#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trocar::mapping {

struct Token {
    enum class Kind { name, integer, number, text, sign, end };
    Kind kind = Kind::end;
    std::string text;  // of a text without its quotes
    std::int64_t integer = 0;
    double number = 0;
    int line = 0;
};

// "# …" to the end of the line is a comment. Names may have dots inside: "aten.add.Tensor". Throws
// Error(input) with file and line.
std::vector<Token> tokens(std::string_view text, const std::string& file);

}  // namespace trocar::mapping
