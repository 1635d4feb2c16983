#include <fmt/format.h>

#include <initializer_list>

#include "mapping/blocks.h"
#include "mapping/cursor.h"
#include "mapping/syntax.h"
#include "trocar/error.h"

namespace trocar::mapping {

namespace {

using Kind = Expression::Kind;

constexpr int deepest_nesting = 100;

// The name of an op, not of a function.
bool is_op(const std::string& name) {
    return (name[0] >= 'A' && name[0] <= 'Z') || name.find('.') != std::string::npos;
}

class Parser : private Cursor {
public:
    Parser(std::string_view text, const std::string& file) : Cursor(text, file) {}

    RuleFile parse() {
        RuleFile rules;
        rules.file = file();
        expect_word("mapping");
        rules.from = name("a dialect");
        expect_word("to");
        rules.to = name("a dialect");
        if (here().kind == Token::Kind::integer) {
            rules.version = next().integer;
        }
        expect(";");
        while (here().kind != Token::Kind::end) {
            item(rules);
        }
        return rules;
    }

private:
    // --- Items ---

    void item(RuleFile& rules) {
        if (take_word("define")) {
            define(rules);
        } else if (take_word("rule")) {
            rules.rules.push_back(rule());
        } else if (take_word("layout")) {
            parse_layout(*this, rules.layout);
        } else if (take_word("fused")) {
            parse_fused(*this, rules.fused);
        } else if (take_word("integers")) {
            parse_integers(*this, rules.integers);
        } else if (take_word("quantized")) {
            expect_word("by");
            rules.quantize = name("the op that quantises");
            expect(",");
            rules.dequantize = name("the op that dequantises");
            expect(";");
        } else if (take_word("needs")) {
            expect_word("types");
            expect(";");
            rules.needs_types = true;
        } else if (take_word("copied")) {
            expect_word("by");
            rules.copy = name("the op that copies");
            expect(";");
        } else if (take_word("untested")) {
            rules.untested = reason();
        } else {
            fail_here(
                "'rule', 'define', 'layout', 'fused', 'integers', 'quantized', 'copied', 'needs' "
                "or "
                "'untested'");
        }
    }

    void define(RuleFile& rules) {
        Definition made;
        made.line = here().line;
        made.name = name("a name");
        if (is_op(made.name)) {
            fail(fmt::format("'{}' reads as an op: a definition begins with a small letter",
                             made.name));
        }
        expect("(");
        while (!take(")")) {
            made.parameters.push_back(name("a parameter"));
            if (!is(")")) {
                expect(",");
            }
        }
        expect("=");
        made.value = expression();
        expect(";");
        const auto key = made.name;
        if (!rules.definitions.emplace(key, std::move(made)).second) {
            fail(fmt::format("'{}' is defined twice", key));
        }
    }

    std::string reason() {
        if (here().kind != Token::Kind::text) {
            fail_here("a reason in quotes");
        }
        auto made = next().text;
        expect(";");
        return made;
    }

    std::unique_ptr<Rule> rule() {
        auto made = std::make_unique<Rule>();
        made->line = here().line;
        made->name = name("the name of the rule");
        made->raw = take_word("raw");
        expect("{");
        while (!take("}")) {
            if (take_word("match")) {
                made->match.push_back(matched_op());
            } else if (take_word("untested")) {
                made->untested = reason();
            } else if (take_word("test")) {
                made->tests.push_back(test());
            } else {
                made->body.push_back(statement());
            }
        }
        if (made->match.empty()) {
            fail(fmt::format("rule '{}' does not say what it matches", made->name));
        }
        return made;
    }

    MatchedOp::Place place() {
        MatchedOp::Place made;
        made.name = name("a name");
        if (take("...")) {
            made.rest = true;
        } else if (take("?")) {
            made.optional = true;
        }
        return made;
    }
    MatchedOp matched_op() {
        MatchedOp made;
        made.line = here().line;
        if (take("(")) {
            do {
                made.outputs.push_back(place());
            } while (take(","));
            expect(")");
        } else {
            made.outputs.push_back(place());
        }
        expect("=");
        made.unordered = take_word("unordered");
        do {
            made.types.push_back(name("the type of an op"));
        } while (take("|"));
        expect("(");
        while (!take(")")) {
            made.inputs.push_back(place());
            if (!is(")")) {
                expect(",");
            }
        }
        expect(";");
        return made;
    }

    Statement statement() {
        Statement made;
        made.line = here().line;
        if (take_word("require")) {
            made.kind = Statement::Kind::require;
            made.value = expression();
            if (take(",")) {
                made.reason = expression();
            }
            expect(";");
            return made;
        }
        if (take("(")) {
            do {
                made.names.push_back(name("a name"));
            } while (take(","));
            expect(")");
        } else {
            made.names.push_back(name("a name, 'match', 'require' or 'test'"));
        }
        expect("=");
        made.value = expression();
        expect(";");
        return made;
    }

    RuleTest test() {
        RuleTest made;
        made.line = here().line;
        expect("{");
        while (!take("}")) {
            if (take_word("within")) {
                const auto value = next();
                made.tolerance = value.kind == Token::Kind::integer
                                     ? static_cast<double>(value.integer)
                                     : value.number;
                expect(";");
                continue;
            }
            if (is_word("declined") && is(";", 1)) {
                next();
                next();
                made.declined = true;
                continue;
            }
            made.fields.push_back(test_field());
        }
        return made;
    }
    TestField test_field() {
        TestField made;
        made.line = here().line;
        if (take_word("as")) {
            do {
                made.types.push_back(name("the type of an op"));
            } while (take("|"));
            expect(";");
            return made;
        }
        if (!is("@")) {
            made.name = name("a tensor or an attribute");
        }
        if (take("@")) {
            made.name += "@" + name("an attribute");
            expect(":");
            do {
                made.values.push_back(expression());
            } while (take("|"));
            expect(";");
            return made;
        }
        expect(":");
        made.constant = take_word("constant");
        do {
            test_tensor(made);
        } while (take("|"));
        if (take_word("scale")) {
            made.scale = expression();
        }
        if (take_word("zero")) {
            made.zero_point = expression();
        }
        if (take("=")) {
            made.tensors.back().elements = expression();
        }
        expect(";");
        return made;
    }

    // "f32[2, 3]", "[2, 3]" of the type before it, "none"; with "= …" its elements.
    void test_tensor(TestField& field) {
        TestTensor made;
        if (take_word("none")) {
            made.absent = true;
        } else if (!is("[") || field.tensors.empty()) {
            made.dtype = name("an element type");
        } else {
            made.dtype = field.tensors.back().dtype;
        }
        if (!made.absent && is("[")) {
            made.shape = expression();
            if (take("=")) {
                made.elements = expression();
            }
        }
        field.tensors.push_back(std::move(made));
    }

    // --- Expressions ---

    Child make(Kind kind) const {
        auto made = std::make_unique<Expression>();
        made->kind = kind;
        made->line = here().line;
        return made;
    }
    Child join(Kind kind, const std::string& text, Child a, Child b) const {
        auto made = make(kind);
        made->text = text;
        made->children.push_back(std::move(a));
        if (b != nullptr) {
            made->children.push_back(std::move(b));
        }
        return made;
    }

    Child expression() {
        if (++depth_ > deepest_nesting) {
            fail("this is nested too deeply");
        }
        auto value = otherwise();
        if (take("?")) {
            auto made = make(Kind::choice);
            made->children.push_back(std::move(value));
            made->children.push_back(expression());
            expect(":");
            made->children.push_back(expression());
            value = std::move(made);
        }
        --depth_;
        return value;
    }
    Child otherwise() {
        auto value = either();
        while (take("??")) {
            value = join(Kind::binary, "??", std::move(value), either());
        }
        return value;
    }
    Child either() {
        auto value = both();
        while (take("||")) {
            value = join(Kind::binary, "||", std::move(value), both());
        }
        return value;
    }
    Child both() {
        auto value = comparison();
        while (take("&&")) {
            value = join(Kind::binary, "&&", std::move(value), comparison());
        }
        return value;
    }
    Child comparison() {
        auto value = sum();
        for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
            if (take(sign)) {
                return join(Kind::binary, sign, std::move(value), sum());
            }
        }
        if (take_word("in")) {
            return join(Kind::binary, "in", std::move(value), sum());
        }
        return value;
    }
    Child chain(std::initializer_list<const char*> signs, Child (Parser::*part)()) {
        auto value = (this->*part)();
        for (bool more = true; more;) {
            more = false;
            for (const char* sign : signs) {
                if (take(sign)) {
                    value = join(Kind::binary, sign, std::move(value), (this->*part)());
                    more = true;
                    break;
                }
            }
        }
        return value;
    }
    Child sum() { return chain({"+", "-"}, &Parser::product); }
    Child product() { return chain({"*", "/", "%"}, &Parser::unary); }
    Child unary() {
        for (const char* sign : {"-", "!"}) {
            if (take(sign)) {
                if (++depth_ > deepest_nesting) {
                    fail("this is nested too deeply");
                }
                auto made = join(Kind::unary, sign, unary(), nullptr);
                --depth_;
                return made;
            }
        }
        auto value = primary();
        while (is("[")) {
            value = indexed(std::move(value));
        }
        return value;
    }
    Child indexed(Child list) {
        expect("[");
        Child from;
        if (!is(":")) {
            from = expression();
        }
        if (take("]")) {
            return join(Kind::index, "", std::move(list), std::move(from));
        }
        expect(":");
        auto made = make(Kind::slice);
        made->children.push_back(std::move(list));
        made->children.push_back(std::move(from));
        made->children.push_back(is("]") ? nullptr : expression());
        expect("]");
        return made;
    }

    Child primary() {
        const auto token = here();
        switch (token.kind) {
            case Token::Kind::integer: {
                auto made = make(Kind::integer);
                made->integer = next().integer;
                return made;
            }
            case Token::Kind::number: {
                auto made = make(Kind::number);
                made->number = next().number;
                return made;
            }
            case Token::Kind::text: {
                auto made = make(Kind::text);
                made->text = next().text;
                return made;
            }
            case Token::Kind::name:
                return named();
            default:
                break;
        }
        if (take("(")) {
            auto value = expression();
            expect(")");
            return value;
        }
        if (is("[")) {
            return list();
        }
        if (take("@")) {
            auto made = make(Kind::attribute);
            made->text = name("an attribute");
            return made;
        }
        fail_here("a value");
    }
    Child list() {
        auto made = make(Kind::list);
        expect("[");
        while (!take("]")) {
            made->children.push_back(item_of_list());
            if (made->children.size() == 1 && take_word("for")) {
                made->kind = Kind::comprehension;
                made->text = name("a variable");
                expect_word("in");
                made->children.push_back(expression());
                expect("]");
                break;
            }
            if (!is("]")) {
                expect(",");
            }
        }
        return made;
    }
    // A value, or a list whose items are meant: "xs...".
    Child item_of_list() {
        auto value = expression();
        if (take("...")) {
            value = join(Kind::spread, "", std::move(value), nullptr);
        }
        return value;
    }
    Child named() {
        const auto word = next().text;
        if (word == "true" || word == "false") {
            auto made = make(Kind::truth);
            made->integer = word == "true" ? 1 : 0;
            return made;
        }
        if (word == "none") {
            return make(Kind::none);
        }
        if (take("@")) {
            auto made = make(Kind::attribute);
            made->target = word;
            made->text = name("an attribute");
            return made;
        }
        if (!is("(")) {
            auto made = make(Kind::variable);
            made->text = word;
            return made;
        }
        auto made = make(is_op(word) ? Kind::op : Kind::call);
        made->text = word;
        expect("(");
        while (!take(")")) {
            if (here().kind == Token::Kind::name && is("=", 1)) {
                if (made->kind != Kind::op) {
                    fail(fmt::format("'{}' takes no arguments by name", word));
                }
                const auto key = next().text;
                expect("=");
                made->named.emplace_back(key, expression());
            } else {
                made->children.push_back(item_of_list());
            }
            if (!is(")")) {
                expect(",");
            }
        }
        if (made->kind == Kind::op && take("->")) {
            made->count = unary();
        }
        return made;
    }

    int depth_ = 0;
};

}  // namespace

RuleFile parse_rules(std::string_view text, const std::string& file) {
    return Parser(text, file).parse();
}

}  // namespace trocar::mapping
