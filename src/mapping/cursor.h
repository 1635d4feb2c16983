#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "mapping/lexer.h"
#include "trocar/error.h"

namespace trocar::mapping {

// Where a parser stands in the words of a file.
class Cursor {
public:
    Cursor(std::string_view text, const std::string& file)
        : file_(file), tokens_(tokens(text, file)) {}

    const std::string& file() const { return file_; }
    const Token& here(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }
    Token next() {
        const auto token = here();
        if (at_ + 1 < tokens_.size()) {
            ++at_;
        }
        return token;
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Fault::input, fmt::format("{}:{}: {}", file_, here().line, what));
    }
    [[noreturn]] void fail_here(const std::string& wanted) const {
        fail(here().kind == Token::Kind::end
                 ? fmt::format("the file ends where {} is expected", wanted)
                 : fmt::format("{} is expected, not '{}'", wanted, here().text));
    }
    bool is(std::string_view sign, std::size_t ahead = 0) const {
        return here(ahead).kind == Token::Kind::sign && here(ahead).text == sign;
    }
    bool is_word(std::string_view word, std::size_t ahead = 0) const {
        return here(ahead).kind == Token::Kind::name && here(ahead).text == word;
    }
    bool take(std::string_view sign) {
        if (!is(sign)) {
            return false;
        }
        next();
        return true;
    }
    bool take_word(std::string_view word) {
        if (!is_word(word)) {
            return false;
        }
        next();
        return true;
    }
    void expect(std::string_view sign) {
        if (!take(sign)) {
            fail_here(fmt::format("'{}'", sign));
        }
    }
    void expect_word(std::string_view word) {
        if (!take_word(word)) {
            fail_here(fmt::format("'{}'", word));
        }
    }
    std::string name(const char* wanted) {
        if (here().kind != Token::Kind::name) {
            fail_here(wanted);
        }
        return next().text;
    }
    // The number of an input.
    int slot() {
        if (here().kind != Token::Kind::integer || here().integer > 100) {
            fail_here("the number of an input");
        }
        return static_cast<int>(next().integer);
    }

private:
    const std::string& file_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
};

}  // namespace trocar::mapping
