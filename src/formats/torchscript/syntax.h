#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trocar::torchscript {

// The code of an archive as a tree: the part of Python that torch's serializer prints.

struct Expression;
using Child = std::unique_ptr<Expression>;

struct Expression {
    enum class Kind {
        name,       // text
        truth,      // integer
        none,       //
        integer,    // integer
        real,       // real
        imaginary,  // real
        text,       // text
        list,       // children
        tuple,      // children
        dict,       // children: keys and values in turn
        attribute,  // child; text
        index,      // children: of what, where
        slice,      // children: of what, from, to, step (nullptr: left out)
        call,       // children: what, arguments; keywords: names of the last arguments
        negative,   // child
    };
    Kind kind = Kind::none;
    int line = 0;
    std::int64_t integer = 0;
    double real = 0;
    std::string text;
    std::vector<Child> children;
    std::vector<std::string> keywords;
};

struct Statement {
    enum class Kind {
        assign,   // targets = value; annotation
        express,  // value
        give,     // return value
        choose,   // if value: body, else: otherwise
        repeat,   // while value: body
        count,    // for targets[0] in value: body
        within,   // with value: body
        pass,
    };
    Kind kind = Kind::pass;
    int line = 0;
    std::vector<Child> targets;
    bool unpacks = false;  // `a, b = value`, or `a, = value`
    Child annotation;
    Child value;
    std::vector<Statement> body;
    std::vector<Statement> otherwise;
};

struct Parameter {
    std::string name;
    Child annotation;
    Child standard;  // what it is where nothing is given; nullptr: it must be given
};

struct Function {
    std::string name;
    std::string file;
    int line = 0;
    std::vector<Parameter> parameters;
    Child result;
    std::vector<Statement> body;
    // Names that are read once, to be taken apart: how many parts.
    std::map<std::string, std::size_t> taken_apart;
};

struct Class {
    struct Attribute {
        std::string name;
        Child annotation;
        Child value;  // nullptr: of each object
    };
    std::string name;  // "__torch__.net.Block"
    std::string base;  // "Module", "NamedTuple", "Interface", "Enum"; "" for others
    std::string file;
    std::vector<Attribute> attributes;
    std::map<std::string, Function> methods;
    // Names that "__parameters__" and "__buffers__" list.
    std::vector<std::string> parameters;
    std::vector<std::string> buffers;

    const Attribute* attribute(std::string_view label) const;  // nullptr: none of that name
};

// All that the code of an archive defines, by name.
struct Code {
    std::map<std::string, Class> classes;
    std::map<std::string, Function> functions;
};

// Adds what a file defines. `module` is what its names begin with ("__torch__.net"), `where` names
// it in messages. Throws Error(input) with the line on what cannot be read.
void parse_code(std::string_view text, const std::string& module, const std::string& file,
                const std::string& where, Code& code);

// "a.b.c" of names and attributes; "" for other expressions.
std::string dotted(const Expression& expression);

}  // namespace trocar::torchscript
