#include "mapping/lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "trocar/error.h"

namespace trocar::mapping {

namespace {

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Signs of several characters, before those of one.
constexpr std::array<std::string_view, 9> long_signs{
    "...", "->", "==", "!=", "<=", ">=", "&&", "||", "??"};
constexpr std::string_view short_signs = "()[]{}<>=+-*/%!?:;,@|.";

class Lexer {
public:
    Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    std::vector<Token> all() {
        std::vector<Token> found;
        for (;;) {
            skip();
            Token token;
            token.line = line_;
            if (at_ == text_.size()) {
                found.push_back(token);
                return found;
            }
            read(token);
            found.push_back(std::move(token));
        }
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Fault::input, fmt::format("{}:{}: {}", file_, line_, what));
    }
    char here(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    void skip() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '#') {
                while (at_ < text_.size() && text_[at_] != '\n') {
                    ++at_;
                }
            } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r') {
                line_ += c == '\n' ? 1 : 0;
                ++at_;
            } else {
                return;
            }
        }
    }

    void read(Token& token) {
        const char c = here();
        if (is_letter(c)) {
            word(token);
        } else if (is_digit(c)) {
            digits(token);
        } else if (c == '"') {
            quoted(token);
        } else {
            sign(token);
        }
    }
    void word(Token& token) {
        token.kind = Token::Kind::name;
        const auto start = at_;
        while (is_letter(here()) || is_digit(here()) || (here() == '.' && is_letter(here(1)))) {
            ++at_;
        }
        token.text = text_.substr(start, at_ - start);
    }
    void digits(Token& token) {
        const auto start = at_;
        while (is_digit(here())) {
            ++at_;
        }
        bool whole = true;
        if (here() == '.' && is_digit(here(1))) {
            whole = false;
            ++at_;
            while (is_digit(here())) {
                ++at_;
            }
        }
        if ((here() == 'e' || here() == 'E') &&
            (is_digit(here(1)) || ((here(1) == '-' || here(1) == '+') && is_digit(here(2))))) {
            whole = false;
            at_ += 2;
            while (is_digit(here())) {
                ++at_;
            }
        }
        token.text = text_.substr(start, at_ - start);
        token.kind = whole ? Token::Kind::integer : Token::Kind::number;
        const auto* end = token.text.data() + token.text.size();
        const auto read = whole ? std::from_chars(token.text.data(), end, token.integer)
                                : std::from_chars(token.text.data(), end, token.number);
        if (read.ec != std::errc{} || read.ptr != end) {
            fail(fmt::format("'{}' is no number that can be held", token.text));
        }
    }
    void quoted(Token& token) {
        token.kind = Token::Kind::text;
        ++at_;
        while (here() != '"') {
            if (at_ == text_.size() || here() == '\n') {
                fail("a closing \" is missing");
            }
            token.text += text_[at_++];
        }
        ++at_;
    }
    void sign(Token& token) {
        token.kind = Token::Kind::sign;
        for (const auto one : long_signs) {
            if (text_.substr(at_).starts_with(one)) {
                token.text = one;
                at_ += one.size();
                return;
            }
        }
        if (short_signs.find(here()) == std::string_view::npos) {
            fail(fmt::format("a character '{}' is not expected", here()));
        }
        token.text = std::string(1, text_[at_++]);
    }

    std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
    int line_ = 1;
};

}  // namespace

std::vector<Token> tokens(std::string_view text, const std::string& file) {
    return Lexer(text, file).all();
}

}  // namespace trocar::mapping
