#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/graph.h"

#pragma GCC visibility push(default)
namespace trocar {

// Which ops. A value: copies share. `op("Conv") & in_module("layer3.*") & !named("*downsample*")`.
// Globs know * (any text) and ? (one character); they match the whole text.
class Selector {
public:
    using Test = std::function<bool(const Graph&, OpId)>;

    Selector();  // matches nothing
    explicit Selector(Test test, std::string text);

    bool operator()(const Graph& graph, OpId op) const { return (*test_)(graph, op); }
    const std::string& text() const {
        return text_;
    }  // parse_selector reads it back, but for `where`

    friend Selector operator&(const Selector& a, const Selector& b);
    friend Selector operator|(const Selector& a, const Selector& b);
    friend Selector operator!(const Selector& a);

private:
    std::shared_ptr<const Test> test_;
    std::string text_;
};

Selector operator&(const Selector& a, const Selector& b);
Selector operator|(const Selector& a, const Selector& b);
Selector operator!(const Selector& a);

Selector every_op();
Selector op(std::string type_glob);    // "Conv", "*Pool"; "com.microsoft:*" names the domain too
Selector named(std::string glob);      // op name
Selector in_module(std::string glob);  // module path, or any module around it
Selector at_index(std::size_t first, std::size_t last);  // place in order, both included
Selector writes(std::string tensor_glob);                // name of one of its outputs
Selector reads(std::string tensor_glob);
Selector with_dtype(DType dtype);  // declared type of one of its outputs, or of a constant input
Selector where(Selector::Test predicate);

// The text form: terms `Conv` (a type), `type:`, `name:`, `module:`, `index:3` or `index:3..9`,
// `writes:`, `reads:`, `dtype:f16`, `pattern:'Conv -> Relu'` (see pattern.h), `all`, `none`;
// combined with & (also a comma between terms: or
// |), ! and parentheses; a term with odd characters in single quotes. Throws Error(usage) with the
// place.
Selector parse_selector(std::string_view text);

// The ops that match, in order.
std::vector<OpId> select(const Graph& graph, const Selector& selector);

// Likewise, but throws Error(usage) where none matches, with `option` as the place to look at and
// what may have been meant.
std::vector<OpId> select_some(const Graph& graph, const Selector& selector, const char* option);
// Types, names, modules and tensors of the graph that resemble a word of the selector.
std::vector<std::string> near_matches(const Graph& graph, const Selector& selector);

// Does `text` match the glob? Case-sensitive.
bool glob_match(std::string_view glob, std::string_view text);

}  // namespace trocar
#pragma GCC visibility pop
