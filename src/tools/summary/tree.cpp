#include "tools/summary/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "util/text.h"

namespace trocar::summary {
namespace {

constexpr std::size_t deepest_path = 24;  // what a path has beyond stays in one part

struct Node {
    std::string part;  // of the module path, or the op's label
    std::size_t row = OpRow::none;
    std::vector<std::size_t> children;
    Sums sums;
    std::uint64_t structure = 0;
    std::uint64_t times = 1;
    std::vector<std::string> parts;  // of all nodes this one stands for; empty: only itself
    std::size_t first = OpRow::none;
    std::size_t last = OpRow::none;
};

bool is_number(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "block12" → "block", "12".
std::pair<std::string_view, std::string_view> numbered(std::string_view text) {
    std::size_t end = text.size();
    while (end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9') {
        --end;
    }
    return {text.substr(0, end), text.substr(end)};
}

// "Relu_3" → "Relu": exporters number the ops of one kind.
std::string_view unnumbered(std::string_view label) {
    auto [stem, number] = numbered(label);
    return !number.empty() && stem.size() > 1 && stem.back() == '_'
               ? stem.substr(0, stem.size() - 1)
               : label;
}

class Tree {
public:
    Tree(const Rows& rows, const TreeOptions& options) : rows_(rows), options_(options) {
        std::size_t at = 0;
        std::size_t root = add_node("");
        build(root, at, OpRow::none, "");
        finish(root);
    }

    std::vector<Layer> layers() {
        if (options_.depth > 0) {
            return emit(options_.depth);
        }
        std::vector<Layer> best = emit(1);
        for (int depth = 2; depth < static_cast<int>(deepest_path) + 40; ++depth) {
            std::vector<Layer> deeper = emit(depth);
            if (deeper.size() > options_.fit || deeper.size() == best.size()) {
                break;
            }
            best = std::move(deeper);
        }
        return best;
    }

private:
    std::size_t add_node(std::string part) {
        nodes_.emplace_back().part = std::move(part);
        return nodes_.size() - 1;
    }

    std::size_t child(std::size_t parent, const std::string& part) {
        auto [found, fresh] =
            by_part_.try_emplace(fmt::format("{}/{}", parent, part), nodes_.size());
        if (fresh) {
            std::size_t node = add_node(part);
            nodes_[parent].children.push_back(node);
        }
        return found->second;
    }

    std::size_t module_of(std::size_t top, const std::string& path) {
        std::size_t node = top;
        std::size_t begin = 0;
        for (std::size_t parts = 1; begin < path.size(); ++parts) {
            std::size_t end = parts < deepest_path ? path.find('.', begin) : std::string::npos;
            end = std::min(end, path.size());
            if (end > begin) {
                node = child(node, path.substr(begin, end - begin));
            }
            begin = end + 1;
        }
        return node;
    }

    // Puts the rows of one graph (those inside `inside`, of one of its bodies) below a node.
    void build(std::size_t top, std::size_t& at, std::size_t inside, const std::string& body) {
        while (at < rows_.rows.size() && rows_.rows[at].inside == inside &&
               rows_.rows[at].body == body) {
            const OpRow& row = rows_.rows[at];
            std::size_t number = at++;
            const Op& op = row.scope->graph->op(row.op);
            std::size_t node = add_node(row.label);
            nodes_[node].row = number;
            nodes_[module_of(top, op.origin.module)].children.push_back(node);
            const auto* bodies = row.scope->bodies_of(row.op);
            while (at < rows_.rows.size() && rows_.rows[at].inside == number) {
                std::string label = rows_.rows[at].body;
                std::size_t below = node;
                if (bodies->size() > 1) {
                    below = add_node(label);
                    nodes_[node].children.push_back(below);
                }
                build(below, at, number, label);
            }
        }
    }

    // Sums, structure, and rows that stand for several.
    void finish(std::size_t at) {
        if (nodes_[at].row != OpRow::none) {
            const OpRow& row = rows_.rows[nodes_[at].row];
            nodes_[at].sums = row.sums;
            nodes_[at].structure = row.structure;
            nodes_[at].first = nodes_[at].last = nodes_[at].row;
        }
        std::vector<std::size_t> children = nodes_[at].children;
        for (std::size_t c : children) {
            finish(c);
        }
        if (nodes_[at].row == OpRow::none) {
            std::uint64_t hash = 1;
            for (std::size_t c : children) {
                const Node& node = nodes_[c];
                nodes_[at].sums.add(node.sums);
                std::string_view part =
                    node.row == OpRow::none ? std::string_view(node.part) : unnumbered(node.part);
                hash = mix(mix(hash, std::hash<std::string_view>{}(part)), node.structure);
            }
            nodes_[at].structure = hash;
            for (std::size_t c : children) {
                std::size_t first = nodes_[c].first;
                nodes_[at].first = std::min(nodes_[at].first, first);
                if (nodes_[c].last != OpRow::none &&
                    (nodes_[at].last == OpRow::none || nodes_[c].last > nodes_[at].last)) {
                    nodes_[at].last = nodes_[c].last;
                }
            }
        }
        if (options_.collapse) {
            collapse(at);
        }
        if (at != 0 && nodes_[at].row == OpRow::none && nodes_[at].children.size() == 1) {
            merge_with_child(at);
        }
    }

    // A module that holds one op, or one module, is shown as one row with it.
    void merge_with_child(std::size_t at) {
        Node& node = nodes_[at];
        const Node& only = nodes_[node.children[0]];
        if (only.row == OpRow::none) {
            if (only.times == 1) {
                node.part += "." + only.part;
                node.children = only.children;
            }
            return;
        }
        node.row = only.row;
        if (only.times > 1) {  // one module called several times
            node.times = only.times;
        }
        node.children = std::vector<std::size_t>(only.children);
    }

    bool alike(const Node& a, const Node& b) const {
        if (a.structure != b.structure || (a.row == OpRow::none) != (b.row == OpRow::none) ||
            a.times != b.times) {
            return false;
        }
        if (a.row != OpRow::none && unnumbered(a.part) == unnumbered(b.part)) {
            return true;
        }
        auto [stem, number] = numbered(a.part);
        auto [other, next] = numbered(b.part);
        return stem == other && !number.empty() && !next.empty();
    }

    void collapse(std::size_t at) {
        std::vector<std::size_t> kept;
        for (std::size_t c : nodes_[at].children) {
            if (!kept.empty() && alike(nodes_[kept.back()], nodes_[c])) {
                Node& first = nodes_[kept.back()];
                if (first.parts.empty()) {
                    first.parts.push_back(first.part);
                }
                first.parts.push_back(nodes_[c].part);
                continue;
            }
            kept.push_back(c);
        }
        for (std::size_t c : kept) {
            if (!nodes_[c].parts.empty()) {
                repeat(c, nodes_[c].parts.size());
            }
        }
        nodes_[at].children = std::move(kept);
    }

    // A node and all below it stand for `times` equal ones.
    void repeat(std::size_t at, std::uint64_t times) {
        Node& node = nodes_[at];
        Sums all;
        all.add(node.sums, times);
        node.sums = all;
        node.times *= times;
        for (std::size_t c : node.children) {
            repeat(c, times);
        }
    }

    static std::string range_of(const Node& node) {
        if (node.parts.empty()) {
            return node.part;
        }
        if (node.row != OpRow::none && unnumbered(node.parts[0]) == unnumbered(node.parts[1])) {
            return std::string(unnumbered(node.part));
        }
        auto [stem, unused] = numbered(node.parts[0]);
        std::vector<std::string> numbers;
        for (const std::string& part : node.parts) {
            numbers.emplace_back(numbered(part).second);
        }
        bool run = true;
        for (std::size_t i = 1; i < numbers.size(); ++i) {
            run = run && numbers[i].size() < 10 && numbers[i - 1].size() < 10 &&
                  std::stol(numbers[i]) == std::stol(numbers[i - 1]) + 1;
        }
        if (run) {
            return fmt::format("{}[{}-{}]", stem, numbers.front(), numbers.back());
        }
        if (numbers.size() <= 4) {
            return fmt::format("{}[{}]", stem, join(numbers, ","));
        }
        return fmt::format("{}[{},{},…,{}]", stem, numbers[0], numbers[1], numbers.back());
    }

    // The kinds of ops in a module that is not opened: "MatMul, Add", or how many there are.
    void kinds(std::size_t at, std::vector<std::string>& found) const {
        const Node& node = nodes_[at];
        if (found.size() > 3) {
            return;
        }
        if (node.row != OpRow::none) {
            const std::string& type = rows_.rows[node.row].type;
            if (std::find(found.begin(), found.end(), type) == found.end()) {
                found.push_back(type);
            }
            return;
        }
        for (std::size_t c : node.children) {
            kinds(c, found);
        }
    }

    void emit(std::size_t at, int depth, int limit, const std::string& parent,
              std::vector<Layer>& layers) const {
        const Node& node = nodes_[at];
        std::string label = range_of(node);
        bool bare = is_number(node.part) || label.starts_with("[");
        if (bare && !parent.empty()) {
            label = fmt::format("{}.{}", parent, label);
        }
        Layer layer;
        layer.label = label;
        layer.depth = depth;
        layer.times = node.times;
        layer.row = node.row;
        layer.sums = node.sums;
        layer.first = node.first;
        layer.last = node.last;
        bool open = depth + 1 < limit;
        if (node.row != OpRow::none) {
            layer.type = rows_.rows[node.row].type;
            layer.pattern = rows_.rows[node.row].pattern;
        } else if (!open && !node.children.empty()) {
            std::vector<std::string> found;
            kinds(at, found);
            layer.type = found.size() <= 3 ? fmt::format("{}", join(found, ", "))
                                           : fmt::format("{} ops", node.sums.ops);
        }
        layers.push_back(std::move(layer));
        if (open) {
            for (std::size_t c : node.children) {
                emit(c, depth + 1, limit, label, layers);
            }
        }
    }

    std::vector<Layer> emit(int limit) const {
        std::vector<Layer> layers;
        for (std::size_t c : nodes_[0].children) {
            emit(c, 0, limit, "", layers);
        }
        return layers;
    }

    const Rows& rows_;
    const TreeOptions& options_;
    std::vector<Node> nodes_;
    std::unordered_map<std::string, std::size_t> by_part_;
};

}  // namespace

std::vector<Layer> layer_tree(const Rows& rows, const TreeOptions& options) {
    return Tree(rows, options).layers();
}

std::vector<Layer> layer_list(const Rows& rows) {
    std::vector<Layer> layers;
    layers.reserve(rows.rows.size());
    std::vector<int> depth(rows.rows.size());
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
        const OpRow& row = rows.rows[i];
        depth[i] = row.inside == OpRow::none ? 0 : depth[row.inside] + 1;
        const std::string& name = row.scope->graph->op(row.op).name;
        Layer layer;
        layer.label = name.empty() ? row.label : name;
        layer.depth = depth[i];
        layer.row = i;
        layer.type = row.type;
        layer.first = layer.last = i;
        layer.sums = row.sums;
        layer.pattern = row.pattern;
        layers.push_back(std::move(layer));
    }
    return layers;
}

bool has_modules(const Rows& rows) {
    return std::any_of(rows.rows.begin(), rows.rows.end(), [](const OpRow& row) {
        return !row.scope->graph->op(row.op).origin.module.empty();
    });
}

}  // namespace trocar::summary
