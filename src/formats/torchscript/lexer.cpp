#include "formats/torchscript/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"

namespace trocar::torchscript {

namespace {

bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

class Lexer {
public:
    Lexer(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    std::vector<Token> run() {
        while (at_ < text_.size()) {
            if (fresh_) {
                begin_line();
                continue;
            }
            word();
        }
        if (!fresh_) {
            add(Token::Kind::newline, "");
        }
        for (; indents_.size() > 1; indents_.pop_back()) {
            add(Token::Kind::dedent, "");
        }
        add(Token::Kind::end, "");
        return std::move(tokens_);
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Fault::input, fmt::format("{}:{}: {}", where_, line_, what));
    }
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    void add(Token::Kind kind, std::string text) {
        tokens_.push_back({kind, line_, std::move(text)});
    }

    void begin_line() {
        std::size_t width = 0;
        while (peek() == ' ') {
            ++at_;
            ++width;
        }
        if (peek() == '#') {
            skip_comment();
        }
        if (at_ >= text_.size()) {
            return;
        }
        if (peek() == '\n' || peek() == '\r') {
            line_ += peek() == '\n' ? 1 : 0;
            ++at_;
            return;
        }
        fresh_ = false;
        if (width > indents_.back()) {
            constexpr std::size_t deepest = 200;
            if (indents_.size() > deepest) {
                fail("it is indented too deeply");
            }
            indents_.push_back(width);
            add(Token::Kind::indent, "");
        }
        while (width < indents_.back()) {
            indents_.pop_back();
            add(Token::Kind::dedent, "");
        }
        if (width != indents_.back()) {
            fail("a line begins where none before it does");
        }
    }
    void skip_comment() {
        while (at_ < text_.size() && peek() != '\n') {
            ++at_;
        }
    }

    void word() {
        const char c = peek();
        if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
        } else if (c == '#') {
            skip_comment();
        } else if (c == '\n') {
            if (brackets_ == 0) {
                add(Token::Kind::newline, "");
                fresh_ = true;
            }
            ++at_;
            ++line_;
        } else if (begins_name(c)) {
            const auto from = at_;
            while (begins_name(peek()) || is_digit(peek())) {
                ++at_;
            }
            add(Token::Kind::name, std::string(text_.substr(from, at_ - from)));
        } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
            number();
        } else if (c == '"' || c == '\'') {
            text();
        } else if (c == '-' && peek(1) == '>') {
            at_ += 2;
            add(Token::Kind::sign, "->");
        } else if (std::string_view("()[]{},:.=-*").find(c) != std::string_view::npos) {
            brackets_ += c == '(' || c == '[' || c == '{' ? 1 : 0;
            brackets_ -= brackets_ > 0 && (c == ')' || c == ']' || c == '}') ? 1 : 0;
            ++at_;
            add(Token::Kind::sign, std::string(1, c));
        } else {
            fail(fmt::format("'{}' is not expected here", c));
        }
    }

    void number() {
        const auto from = at_;
        bool real = false;
        while (is_digit(peek())) {
            ++at_;
        }
        if (peek() == '.') {
            real = true;
            ++at_;
            while (is_digit(peek())) {
                ++at_;
            }
        }
        const bool signed_power = peek(1) == '-' || peek(1) == '+';
        if ((peek() == 'e' || peek() == 'E') && is_digit(peek(signed_power ? 2 : 1))) {
            real = true;
            at_ += signed_power ? 2 : 1;
            while (is_digit(peek())) {
                ++at_;
            }
        }
        auto kind = real ? Token::Kind::real : Token::Kind::integer;
        auto digits = std::string(text_.substr(from, at_ - from));
        if (peek() == 'j') {
            ++at_;
            kind = Token::Kind::imaginary;
        }
        add(kind, std::move(digits));
    }

    void text() {
        const char quote = peek();
        ++at_;
        std::string made;
        while (peek() != quote) {
            if (at_ >= text_.size() || peek() == '\n') {
                fail("a text does not end");
            }
            if (peek() != '\\') {
                made += peek();
                ++at_;
                continue;
            }
            ++at_;
            made += escape();
        }
        ++at_;
        add(Token::Kind::text, std::move(made));
    }
    char escape() {
        const char c = peek();
        ++at_;
        if (c >= '0' && c <= '7') {
            int value = c - '0';
            for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i, ++at_) {
                value = value * 8 + (peek() - '0');
            }
            return static_cast<char>(value & 0xff);
        }
        if (c == 'x') {
            const auto digit = [&] {
                const auto place = std::string_view("0123456789abcdef").find(peek());
                if (place == std::string_view::npos) {
                    fail("an escape in a text is broken");
                }
                ++at_;
                return static_cast<int>(place);
            };
            const int high = digit();
            return static_cast<char>(high * 16 + digit());
        }
        constexpr std::string_view names = "abfnrtv\\'\"";
        constexpr std::string_view values = "\a\b\f\n\r\t\v\\'\"";
        const auto place = names.find(c);
        if (place == std::string_view::npos) {
            fail("an escape in a text is broken");
        }
        return values[place];
    }

    std::string_view text_;
    const std::string& where_;
    std::size_t at_ = 0;
    int line_ = 1;
    int brackets_ = 0;
    bool fresh_ = true;
    std::vector<std::size_t> indents_{0};
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view text, const std::string& where) {
    return Lexer(text, where).run();
}

}  // namespace trocar::torchscript
