#include "trocar/selector.h"

#include <fmt/format.h>

#include <mutex>

#include "trocar/error.h"

namespace trocar {

bool glob_match(std::string_view glob, std::string_view text) {
    std::size_t g = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;
    std::size_t mark = 0;
    while (t < text.size()) {
        if (g < glob.size() && (glob[g] == '?' || (glob[g] != '*' && glob[g] == text[t]))) {
            ++g;
            ++t;
        } else if (g < glob.size() && glob[g] == '*') {
            star = g++;
            mark = t;
        } else if (star != std::string_view::npos) {
            g = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (g < glob.size() && glob[g] == '*') {
        ++g;
    }
    return g == glob.size();
}

namespace {

// A term as parse_selector reads it: quoted where it has characters of the grammar.
std::string in_quotes(std::string_view kind, std::string_view text) {
    if (text.find_first_of(" &|!(),'") == std::string_view::npos && !text.empty()) {
        return fmt::format("{}{}", kind, text);
    }
    std::string escaped;
    for (const char c : text) {
        escaped += c;
        if (c == '\'') {
            escaped += c;
        }
    }
    return fmt::format("{}'{}'", kind, escaped);
}

bool any_tensor(const Graph& graph, const std::vector<TensorId>& list, std::string_view glob) {
    for (const auto id : list) {
        if (id != TensorId::none && glob_match(glob, graph.tensor(id).name)) {
            return true;
        }
    }
    return false;
}

}  // namespace

Selector::Selector() : Selector([](const Graph&, OpId) { return false; }, "none") {}

Selector::Selector(Test test, std::string text)
    : test_(std::make_shared<const Test>(std::move(test))), text_(std::move(text)) {}

Selector operator&(const Selector& a, const Selector& b) {
    return Selector([a, b](const Graph& g, OpId o) { return a(g, o) && b(g, o); },
                    fmt::format("({} & {})", a.text(), b.text()));
}

Selector operator|(const Selector& a, const Selector& b) {
    return Selector([a, b](const Graph& g, OpId o) { return a(g, o) || b(g, o); },
                    fmt::format("({} | {})", a.text(), b.text()));
}

Selector operator!(const Selector& a) {
    return Selector([a](const Graph& g, OpId o) { return !a(g, o); }, fmt::format("!{}", a.text()));
}

Selector every_op() {
    return Selector([](const Graph&, OpId) { return true; }, "all");
}

Selector op(std::string type_glob) {
    auto text = in_quotes("type:", type_glob);
    const auto colon = type_glob.find(':');
    if (colon != std::string::npos) {
        return Selector(
            [domain = type_glob.substr(0, colon), type = type_glob.substr(colon + 1)](
                const Graph& g, OpId o) {
                return glob_match(domain, g.op(o).domain) && glob_match(type, g.op(o).type);
            },
            std::move(text));
    }
    return Selector([glob = std::move(type_glob)](
                        const Graph& g, OpId o) { return glob_match(glob, g.op(o).type); },
                    std::move(text));
}

Selector named(std::string glob) {
    auto text = in_quotes("name:", glob);
    return Selector(
        [glob = std::move(glob)](const Graph& g, OpId o) { return glob_match(glob, g.op(o).name); },
        std::move(text));
}

Selector in_module(std::string glob) {
    auto text = in_quotes("module:", glob);
    return Selector(
        [glob = std::move(glob)](const Graph& g, OpId o) {
            const std::string_view module = g.op(o).origin.module;
            for (auto end = module.size();; end = module.rfind('.', end - 1)) {
                if (end == std::string_view::npos) {
                    return false;
                }
                if (glob_match(glob, module.substr(0, end))) {
                    return true;
                }
                if (end == 0) {
                    return false;
                }
            }
        },
        std::move(text));
}

namespace {

// Places in order are counted once per graph and remembered: a test must not walk the graph each
// time.
class Places {
public:
    std::size_t of(const Graph& graph, OpId op) {
        const std::lock_guard lock(mutex_);
        if (&graph != graph_ || graph.op_limit() != limit_ || graph.op_count() != count_) {
            graph_ = &graph;
            limit_ = graph.op_limit();
            count_ = graph.op_count();
            places_.assign(limit_, 0);
            std::size_t place = 0;
            for (const auto id : graph.ops()) {
                places_[index(id)] = place++;
            }
        }
        return places_[index(op)];
    }

private:
    std::mutex mutex_;
    const Graph* graph_ = nullptr;
    std::size_t limit_ = 0;
    std::size_t count_ = 0;
    std::vector<std::size_t> places_;
};

}  // namespace

Selector at_index(std::size_t first, std::size_t last) {
    auto places = std::make_shared<Places>();
    return Selector(
        [=](const Graph& g, OpId o) {
            const auto place = places->of(g, o);
            return place >= first && place <= last;
        },
        first == last ? fmt::format("index:{}", first) : fmt::format("index:{}..{}", first, last));
}

Selector writes(std::string tensor_glob) {
    auto text = in_quotes("writes:", tensor_glob);
    return Selector([glob = std::move(tensor_glob)](
                        const Graph& g, OpId o) { return any_tensor(g, g.op(o).outputs, glob); },
                    std::move(text));
}

Selector reads(std::string tensor_glob) {
    auto text = in_quotes("reads:", tensor_glob);
    return Selector(
        [glob = std::move(tensor_glob)](const Graph& g, OpId o) {
            return any_tensor(g, g.op(o).inputs, glob) || any_tensor(g, g.op(o).captures, glob);
        },
        std::move(text));
}

Selector with_dtype(DType dtype) {
    return Selector(
        [dtype](const Graph& g, OpId o) {
            const auto is = [&](TensorId id) {
                return id != TensorId::none && g.tensor(id).type.dtype == dtype;
            };
            for (const auto id : g.op(o).outputs) {
                if (is(id)) {
                    return true;
                }
            }
            for (const auto id : g.op(o).inputs) {
                if (is(id) && g.tensor(id).constant) {
                    return true;
                }
            }
            return false;
        },
        fmt::format("dtype:{}", name(dtype)));
}

Selector where(Selector::Test predicate) {
    return Selector(std::move(predicate), "where");
}

std::vector<OpId> select(const Graph& graph, const Selector& selector) {
    std::vector<OpId> found;
    for (const auto id : graph.ops()) {
        if (selector(graph, id)) {
            found.push_back(id);
        }
    }
    return found;
}

}  // namespace trocar
