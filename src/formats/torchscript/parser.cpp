#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "formats/torchscript/lexer.h"
#include "formats/torchscript/syntax.h"
#include "trocar/error.h"

namespace trocar::torchscript {

namespace {

constexpr int deepest_nesting = 100;
constexpr int longest_chain = 200;  // of attributes, calls and places: a.b(c)[d]

using Kind = Expression::Kind;

class Parser {
public:
    Parser(std::vector<Token> tokens, const std::string& module, const std::string& file,
           const std::string& where, Code& code)
        : tokens_(std::move(tokens)), module_(module), file_(file), where_(where), code_(code) {}

    void run() {
        while (peek().kind != Token::Kind::end) {
            if (is_name("class")) {
                add_class();
            } else if (is_name("def")) {
                auto made = function();
                const auto name = fmt::format("{}.{}", module_, made.name);
                if (!code_.functions.emplace(name, std::move(made)).second) {
                    fail(fmt::format("'{}' is defined twice", name));
                }
            } else {
                statement();  // older files begin with the version of the op set
            }
        }
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Fault::input, fmt::format("{}:{}: {}", where_, peek().line, what));
    }
    const Token& peek(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }
    const Token& next() {
        const auto& token = peek();
        at_ += at_ + 1 < tokens_.size() ? 1 : 0;
        return token;
    }
    bool is_sign(std::string_view text, std::size_t ahead = 0) const {
        return peek(ahead).kind == Token::Kind::sign && peek(ahead).text == text;
    }
    bool is_name(std::string_view text) const {
        return peek().kind == Token::Kind::name && peek().text == text;
    }
    bool take(std::string_view sign) {
        if (!is_sign(sign)) {
            return false;
        }
        next();
        return true;
    }
    void expect(std::string_view sign) {
        if (!take(sign)) {
            fail(fmt::format("'{}' is expected", sign));
        }
    }
    void expect(Token::Kind kind, const char* what) {
        if (peek().kind != kind) {
            fail(fmt::format("{} is expected", what));
        }
        next();
    }
    std::string name() {
        if (peek().kind != Token::Kind::name) {
            fail("a name is expected");
        }
        return next().text;
    }

    void add_class() {
        next();
        Class made;
        made.name = fmt::format("{}.{}", module_, name());
        made.file = file_;
        if (take("(")) {
            made.base = dotted(*expression());
            expect(")");
        }
        expect(":");
        expect(Token::Kind::newline, "the end of the line");
        expect(Token::Kind::indent, "a line further in");
        while (peek().kind != Token::Kind::dedent && peek().kind != Token::Kind::end) {
            if (is_name("def")) {
                auto method = function();
                const auto label = method.name;
                made.methods.insert_or_assign(label, std::move(method));
            } else {
                add_attribute(made, statement());
            }
        }
        if (peek().kind == Token::Kind::dedent) {
            next();
        }
        const auto full = made.name;
        if (!code_.classes.emplace(full, std::move(made)).second) {
            fail(fmt::format("'{}' is defined twice", full));
        }
    }
    // `x : T`, `x : Final[T] = value`, `__parameters__ = ["x", ]`, `__annotations__["0"] = T`.
    void add_attribute(Class& made, Statement line) const {
        if (line.kind != Statement::Kind::assign || line.targets.size() != 1) {
            if (line.kind == Statement::Kind::pass) {
                return;
            }
            fail("an attribute or a method is expected");
        }
        auto& target = *line.targets[0];
        if (target.kind == Kind::index && target.children[1]->kind == Kind::text &&
            dotted(*target.children[0]) == "__annotations__") {
            made.attributes.push_back({target.children[1]->text, std::move(line.value), nullptr});
            return;
        }
        if (target.kind != Kind::name) {
            fail("the name of an attribute is expected");
        }
        if (target.text == "__parameters__" || target.text == "__buffers__") {
            auto& names = target.text == "__buffers__" ? made.buffers : made.parameters;
            if (line.value) {
                for (const auto& item : line.value->children) {
                    names.push_back(item->text);
                }
            }
            return;
        }
        made.attributes.push_back({target.text, std::move(line.annotation), std::move(line.value)});
    }

    Function function() {
        Function made;
        made.line = next().line;
        made.file = file_;
        made.name = name();
        expect("(");
        while (!take(")")) {
            Parameter one;
            take("*");
            one.name = name();
            if (take(":")) {
                one.annotation = expression();
            }
            if (take("=")) {
                one.standard = expression();
            }
            made.parameters.push_back(std::move(one));
            if (!take(",") && !is_sign(")")) {
                fail("',' or ')' is expected");
            }
        }
        if (take("->")) {
            made.result = expression();
        }
        expect(":");
        made.body = block();
        find_taken_apart(made);
        return made;
    }

    std::vector<Statement> block() {
        std::vector<Statement> all;
        expect(Token::Kind::newline, "the end of the line");
        expect(Token::Kind::indent, "a line further in");
        while (peek().kind != Token::Kind::dedent && peek().kind != Token::Kind::end) {
            all.push_back(statement());
        }
        if (peek().kind == Token::Kind::dedent) {
            next();
        }
        return all;
    }

    Statement statement() {
        Statement made;
        made.line = peek().line;
        if (is_name("pass")) {
            next();
        } else if (is_name("return")) {
            next();
            made.kind = Statement::Kind::give;
            if (peek().kind != Token::Kind::newline) {
                made.value = expressions();
            }
        } else if (is_name("if") || is_name("while") || is_name("with")) {
            const auto word = next().text;
            made.kind = word == "if"      ? Statement::Kind::choose
                        : word == "while" ? Statement::Kind::repeat
                                          : Statement::Kind::within;
            made.value = expression();
            if (word == "with" && is_name("as")) {
                next();
                made.targets.push_back(expression());
            }
            expect(":");
            made.body = block();
            if (word == "if" && is_name("else")) {
                next();
                expect(":");
                made.otherwise = block();
            }
            return made;
        } else if (is_name("for")) {
            next();
            made.kind = Statement::Kind::count;
            made.targets.push_back(expression());
            if (name() != "in") {
                fail("'in' is expected");
            }
            made.value = expression();
            expect(":");
            made.body = block();
            return made;
        } else {
            assignment(made);
        }
        expect(Token::Kind::newline, "the end of the line");
        return made;
    }

    void assignment(Statement& made) {
        auto first = expression();
        if (is_sign(",") || is_sign("=") || is_sign(":")) {
            made.kind = Statement::Kind::assign;
            made.targets.push_back(std::move(first));
            while (take(",")) {
                made.unpacks = true;
                if (!is_sign("=")) {
                    made.targets.push_back(expression());
                }
            }
            if (take(":")) {
                made.annotation = expression();
            }
            if (take("=")) {
                made.value = expressions();
            } else if (!made.annotation) {
                fail("'=' is expected");
            }
            return;
        }
        made.kind = Statement::Kind::express;
        made.value = std::move(first);
    }

    // One expression, or several with commas between: a tuple.
    Child expressions() {
        auto first = expression();
        if (!is_sign(",")) {
            return first;
        }
        auto made = node(Kind::tuple);
        made->children.push_back(std::move(first));
        while (take(",")) {
            if (peek().kind == Token::Kind::newline) {
                break;
            }
            made->children.push_back(expression());
        }
        return made;
    }

    Child node(Kind kind) const {
        auto made = std::make_unique<Expression>();
        made->kind = kind;
        made->line = peek().line;
        return made;
    }

    Child expression() {
        if (++depth_ > deepest_nesting) {
            fail("an expression is nested too deeply");
        }
        auto made = chain();
        --depth_;
        return made;
    }

    Child chain() {
        if (is_sign("-")) {
            auto made = node(Kind::negative);
            next();
            made->children.push_back(expression());
            return made;
        }
        auto made = primary();
        for (int length = 0;; ++length) {
            if (length > longest_chain) {
                fail("an expression is too long");
            }
            if (take(".")) {
                auto outer = node(Kind::attribute);
                outer->text = name();
                outer->children.push_back(std::move(made));
                made = std::move(outer);
            } else if (is_sign("(")) {
                made = call(std::move(made));
            } else if (is_sign("[")) {
                made = place(std::move(made));
            } else {
                return made;
            }
        }
    }

    Child call(Child of) {
        auto made = node(Kind::call);
        next();
        made->children.push_back(std::move(of));
        while (!take(")")) {
            if (peek().kind == Token::Kind::name && is_sign("=", 1)) {
                made->keywords.push_back(next().text);
                next();
            } else if (!made->keywords.empty()) {
                fail("an argument without a name follows one with a name");
            }
            made->children.push_back(expression());
            if (!take(",") && !is_sign(")")) {
                fail("',' or ')' is expected");
            }
        }
        return made;
    }

    Child place(Child of) {
        auto made = node(Kind::index);
        next();
        made->children.push_back(std::move(of));
        std::vector<Child> parts;
        bool slice = false;
        while (!is_sign("]")) {
            if (is_sign(":")) {
                parts.push_back(nullptr);
            } else {
                parts.push_back(expression());
            }
            if (take(":")) {
                slice = true;
                if (is_sign("]")) {
                    parts.push_back(nullptr);
                }
            } else if (!take(",")) {
                break;
            }
        }
        expect("]");
        if (slice) {
            made->kind = Kind::slice;
            for (std::size_t i = 0; i < 3; ++i) {
                made->children.push_back(i < parts.size() ? std::move(parts[i]) : nullptr);
            }
        } else if (parts.size() == 1) {
            made->children.push_back(std::move(parts[0]));
        } else {
            auto tuple = node(Kind::tuple);  // of types: Dict[str, int]
            tuple->children = std::move(parts);
            made->children.push_back(std::move(tuple));
        }
        return made;
    }

    Child primary() {
        const auto& token = peek();
        switch (token.kind) {
            case Token::Kind::name:
                return named();
            case Token::Kind::integer:
            case Token::Kind::real:
            case Token::Kind::imaginary:
                return number();
            case Token::Kind::text: {
                auto made = node(Kind::text);
                made->text = next().text;
                return made;
            }
            default:
                break;
        }
        if (is_sign("(")) {
            return parenthesis();
        }
        if (is_sign("[")) {
            auto made = node(Kind::list);
            next();
            items(*made, "]");
            return made;
        }
        if (is_sign("{")) {
            auto made = node(Kind::dict);
            next();
            while (!take("}")) {
                made->children.push_back(expression());
                expect(":");
                made->children.push_back(expression());
                if (!take(",") && !is_sign("}")) {
                    fail("',' or '}' is expected");
                }
            }
            return made;
        }
        fail("an expression is expected");
    }
    Child named() {
        const auto text = peek().text;
        const bool truth = text == "True" || text == "False";
        auto made = node(truth ? Kind::truth : text == "None" ? Kind::none : Kind::name);
        made->integer = text == "True" ? 1 : 0;
        if (text == "inf" || text == "nan") {
            made->kind = Kind::real;
            made->real = text == "inf" ? INFINITY : NAN;
        }
        made->text = text;
        next();
        return made;
    }
    Child number() {
        const auto& token = peek();
        const auto kind = token.kind;
        auto made = node(kind == Token::Kind::integer ? Kind::integer
                         : kind == Token::Kind::real  ? Kind::real
                                                      : Kind::imaginary);
        const auto* begin = token.text.data();
        const auto* end = begin + token.text.size();
        const auto read = kind == Token::Kind::integer ? std::from_chars(begin, end, made->integer)
                                                       : std::from_chars(begin, end, made->real);
        if (kind == Token::Kind::integer && read.ec == std::errc::result_out_of_range &&
            token.text == "9223372036854775808") {
            made->integer = INT64_MIN;  // behind a minus
        } else if (kind == Token::Kind::integer && read.ec != std::errc()) {
            fail(fmt::format("{} does not fit 64 bits", token.text));
        }
        next();
        return made;
    }
    void items(Expression& made, std::string_view end) {
        while (!take(end)) {
            made.children.push_back(expression());
            if (!take(",") && !is_sign(end)) {
                fail(fmt::format("',' or '{}' is expected", end));
            }
        }
    }
    Child parenthesis() {
        auto made = node(Kind::tuple);
        next();
        if (take(")")) {
            return made;
        }
        made->children.push_back(expression());
        if (take(")")) {
            return std::move(made->children[0]);
        }
        expect(",");
        items(*made, ")");
        return made;
    }

    // Names that are read in one place only, in which a list or tuple is taken apart.
    struct Reads {
        std::map<std::string, std::size_t> count;
        std::map<std::string, std::size_t> apart;
    };
    static void reads(const Expression& e, Reads& all) {
        if (e.kind == Kind::name) {
            ++all.count[e.text];
        }
        for (const auto& child : e.children) {
            if (child) {
                reads(*child, all);
            }
        }
    }
    static void reads(const std::vector<Statement>& body, Reads& all) {
        for (const auto& one : body) {
            if (one.value) {
                reads(*one.value, all);
                if (one.unpacks && one.value->kind == Kind::name) {
                    all.apart[one.value->text] = one.targets.size();
                }
            }
            reads(one.body, all);
            reads(one.otherwise, all);
        }
    }
    static void find_taken_apart(Function& made) {
        Reads all;
        reads(made.body, all);
        for (const auto& [name, parts] : all.apart) {
            if (all.count[name] == 1) {
                made.taken_apart[name] = parts;
            }
        }
    }

    std::vector<Token> tokens_;
    const std::string& module_;
    const std::string& file_;
    const std::string& where_;
    Code& code_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

const Class::Attribute* Class::attribute(std::string_view label) const {
    for (const auto& one : attributes) {
        if (one.name == label) {
            return &one;
        }
    }
    return nullptr;
}

void parse_code(std::string_view text, const std::string& module, const std::string& file,
                const std::string& where, Code& code) {
    Parser(lex(text, where), module, file, where, code).run();
}

std::string dotted(const Expression& expression) {
    if (expression.kind == Kind::name) {
        return expression.text;
    }
    if (expression.kind == Kind::attribute) {
        const auto outer = dotted(*expression.children[0]);
        return outer.empty() ? outer : fmt::format("{}.{}", outer, expression.text);
    }
    return {};
}

}  // namespace trocar::torchscript
