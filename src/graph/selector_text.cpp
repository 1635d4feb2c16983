// The text form of selectors.
#include <fmt/format.h>

#include <charconv>

#include "trocar/error.h"
#include "trocar/pattern.h"
#include "trocar/selector.h"

namespace trocar {

namespace {

// or := and (('|' | ',') and)* ; and := not ('&' not)* ; not := '!' not | '(' or ')' | term
class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    Selector parse() {
        auto selector = either();
        skip_space();
        if (at_ < text_.size()) {
            fail(fmt::format("'{}' is not expected", text_[at_]));
        }
        return selector;
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Fault::usage,
                    fmt::format("selector '{}', character {}: {}", text_, at_ + 1, what),
                    "for example: Conv, 'type:*Pool & module:layer3.*', index:3..9, name:/head/*");
    }
    void skip_space() {
        while (at_ < text_.size() && text_[at_] == ' ') {
            ++at_;
        }
    }
    bool take(char c) {
        skip_space();
        if (at_ < text_.size() && text_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }

    Selector either() {
        auto left = both();
        while (take('|') || take(',')) {
            left = left | both();
        }
        return left;
    }
    Selector both() {
        auto left = negated();
        while (take('&')) {
            left = left & negated();
        }
        return left;
    }
    Selector negated() {
        if (++depth_ > 200) {
            fail("it is nested too deeply");
        }
        auto selector = take('!') ? !negated() : primary();
        --depth_;
        return selector;
    }
    Selector primary() {
        if (take('(')) {
            auto inner = either();
            if (!take(')')) {
                fail("a ')' is missing");
            }
            return inner;
        }
        skip_space();
        const auto start = at_;
        std::string kind;
        std::string word = this->word(kind);
        if (word.empty() && kind.empty()) {
            at_ = start;
            fail("a term is missing");
        }
        return term(kind, word, start);
    }

    // Reads KIND:WORD or WORD, where WORD may be in single quotes ('' inside stands for one).
    std::string word(std::string& kind) {
        std::string word;
        bool colon_seen = false;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\'') {
                quoted(word);
                return word;
            }
            if (c == ' ' || c == '&' || c == '|' || c == ',' || c == '(' || c == ')' || c == '!') {
                break;
            }
            ++at_;
            if (c == ':' && !colon_seen && is_kind(word)) {
                colon_seen = true;
                kind = std::move(word);
                word.clear();
                continue;
            }
            word += c;
        }
        return word;
    }
    void quoted(std::string& word) {
        ++at_;
        while (true) {
            if (at_ >= text_.size()) {
                fail("a closing ' is missing");
            }
            if (text_[at_] == '\'') {
                ++at_;
                if (at_ >= text_.size() || text_[at_] != '\'') {
                    return;
                }
            }
            word += text_[at_++];
        }
    }
    static bool is_kind(std::string_view word) {
        for (const auto* kind :
             {"type", "name", "module", "index", "writes", "reads", "dtype", "pattern"}) {
            if (word == kind) {
                return true;
            }
        }
        return false;
    }

    Selector term(const std::string& kind, const std::string& word, std::size_t start) {
        if (kind == "name") {
            return named(word);
        }
        if (kind == "module") {
            return in_module(word);
        }
        if (kind == "writes") {
            return writes(word);
        }
        if (kind == "reads") {
            return reads(word);
        }
        if (kind == "pattern") {
            return pattern(word).all();
        }
        if (kind == "index") {
            return indices(word, start);
        }
        if (kind == "dtype") {
            const auto dtype = parse_dtype(word);
            if (!dtype) {
                at_ = start;
                fail(fmt::format("'{}' is no element type", word));
            }
            return with_dtype(*dtype);
        }
        if (kind.empty() && word == "all") {
            return every_op();
        }
        if (kind.empty() && word == "none") {
            return {};
        }
        return op(word);
    }

    Selector indices(const std::string& word, std::size_t start) {
        const auto dots = word.find("..");
        const auto number = [&](std::string_view digits) {
            std::size_t value = 0;
            const auto [end, fault] =
                std::from_chars(digits.data(), digits.data() + digits.size(), value);
            if (fault != std::errc{} || end != digits.data() + digits.size()) {
                at_ = start;
                fail(fmt::format("'{}' is not a place like 3 or 3..9", word));
            }
            return value;
        };
        const auto first = number(std::string_view(word).substr(0, dots));
        const auto last =
            dots == std::string::npos ? first : number(std::string_view(word).substr(dots + 2));
        return at_index(first, last);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

Selector parse_selector(std::string_view text) {
    return Parser(text).parse();
}

}  // namespace trocar
