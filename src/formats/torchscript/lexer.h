#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trocar::torchscript {

struct Token {
    enum class Kind { name, integer, real, imaginary, text, sign, newline, indent, dedent, end };
    Kind kind = Kind::end;
    int line = 0;
    std::string text;  // of a text: without quotes and escapes
};

// The words of a file of code. Lines that end inside brackets go on. Throws Error(input).
std::vector<Token> lex(std::string_view text, const std::string& where);

}  // namespace trocar::torchscript
