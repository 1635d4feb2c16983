#include "tools/profile/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "util/statistics.h"
#include "util/text.h"

namespace trocar::profiles {

namespace {

// Sums that are known only where all of their terms are.
void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& term) {
    sum = sum && term ? std::optional(*sum + *term) : std::nullopt;
}

constexpr const char* between = " … ";  // in the name of a layer of several ops

// "conv1/Conv" of "/layer1/conv1/Conv" for 2.
std::string last_names(const std::string& path, int count) {
    auto from = path.size();
    while (count-- > 0 && from != std::string::npos && from > 0) {
        from = path.rfind('/', from - 1);
    }
    const auto names = path.substr(from == std::string::npos ? 0 : from + 1);
    return names.empty() ? path : names;
}

Row row_of(const Profile& profile, std::size_t number, const std::vector<std::size_t>& runs) {
    const auto& part = profile.parts[number];
    Row row;
    row.label = label_of(part);
    row.part = number;
    row.self = figures(part.self_ns, profile, runs);
    row.total = figures(part.total_ns, profile, runs);
    row.cold_ns = part.cold_ns;
    row.macs = part.macs;
    row.flops = part.flops;
    row.bytes = part.bytes;
    row.uncounted = part.uncounted;
    return row;
}

struct Node {
    std::string label;
    std::size_t part = Row::none;
    std::vector<std::size_t> children;
};

class Tree {
public:
    explicit Tree(const Profile& profile) : profile_(profile), runs_(typical_runs(profile)) {
        nodes_.emplace_back();
        std::vector<std::size_t> node_of(profile.parts.size());
        for (std::size_t i = 0; i < profile.parts.size(); ++i) {
            const auto& part = profile.parts[i];
            const auto above =
                part.inside != ProfilePart::none ? node_of[part.inside] : module_node(part.module);
            node_of[i] = nodes_.size();
            nodes_[above].children.push_back(nodes_.size());
            nodes_.push_back({label_of(part), i, {}});
        }
    }

    std::vector<Row> rows(int depth) const {
        std::vector<Row> rows;
        for (const auto child : nodes_[0].children) {
            emit(child, 0, depth, rows);
        }
        return rows;
    }

private:
    std::size_t module_node(const std::string& module) {
        std::size_t at = 0;
        if (module.empty()) {
            return at;
        }
        for (const auto& name : split(module, '.')) {
            const auto [found, fresh] = by_name_.try_emplace({at, name}, nodes_.size());
            if (fresh) {
                nodes_[at].children.push_back(nodes_.size());
                nodes_.push_back({name, Row::none, {}});
            }
            at = found->second;
        }
        return at;
    }

    void gather(std::size_t node, std::vector<std::size_t>& parts) const {
        if (nodes_[node].part != Row::none) {
            parts.push_back(nodes_[node].part);
        }
        for (const auto child : nodes_[node].children) {
            gather(child, parts);
        }
    }

    Row module_row(std::size_t node) const {
        std::vector<std::size_t> parts;
        gather(node, parts);
        Row row;
        row.label = nodes_[node].label;
        row.parts = parts.size();
        row.macs = row.flops = row.bytes = 0;
        std::vector<double> total(profile_.wall_ns.size());
        for (const auto number : parts) {
            const auto& part = profile_.parts[number];
            for (std::size_t run = 0; run < total.size(); ++run) {
                total[run] += part.self_ns[run];
            }
            if (part.inside == ProfilePart::none) {
                row.cold_ns += part.cold_ns;
                add(row.macs, part.macs);
                add(row.flops, part.flops);
                add(row.bytes, part.bytes);
                row.uncounted = part.uncounted.empty() ? row.uncounted : part.uncounted;
            }
        }
        row.total = figures(total, profile_, runs_);
        return row;
    }

    void emit(std::size_t node, int level, int depth, std::vector<Row>& rows) const {
        const auto& at = nodes_[node];
        // A module with one thing in it is that thing.
        if (at.part == Row::none && at.children.size() == 1) {
            const auto before = rows.size();
            emit(at.children[0], level, depth, rows);
            const bool is_the_module = rows[before].label.find(between) != std::string::npos;
            rows[before].label =
                is_the_module ? at.label : fmt::format("{}.{}", at.label, rows[before].label);
            return;
        }
        rows.push_back(at.part == Row::none ? module_row(node) : row_of(profile_, at.part, runs_));
        rows.back().label = at.label;
        rows.back().depth = level;
        if (level + 1 < depth) {
            for (const auto child : at.children) {
                emit(child, level + 1, depth, rows);
            }
        }
    }

    const Profile& profile_;
    std::vector<std::size_t> runs_;
    std::vector<Node> nodes_;
    std::map<std::pair<std::size_t, std::string>, std::size_t> by_name_;
};

}  // namespace

Figures figures(const std::vector<double>& by_run, const Profile& profile,
                const std::vector<std::size_t>& runs) {
    const std::vector<double> steady(by_run.begin() + static_cast<std::ptrdiff_t>(profile.steady),
                                     by_run.end());
    Figures result;
    result.typical = typical(by_run, runs);
    const auto spread_of = spread(steady);
    result.median = spread_of.median;
    result.deviation = spread_of.deviation;
    result.p5 = quantile(steady, 0.05);
    result.p95 = quantile(steady, 0.95);
    result.p99 = quantile(steady, 0.99);
    result.interval = median_interval(steady);
    return result;
}

std::string label_of(const ProfilePart& part) {
    if (const auto dots = part.name.find(between); dots != std::string::npos) {
        return last_names(part.name.substr(0, dots), 2) + between +
               last_names(part.name.substr(dots + std::string_view(between).size()), 2);
    }
    // A fused op is called after the module that it begins with: "conv1/Conv".
    return last_names(part.name, part.ops.size() > 1 ? 2 : 1);
}

std::vector<Row> part_rows(const Profile& profile) {
    const auto runs = typical_runs(profile);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < profile.parts.size(); ++i) {
        rows.push_back(row_of(profile, i, runs));
        rows.back().label = profile.parts[i].name;
    }
    return rows;
}

std::vector<Row> tree_rows(const Profile& profile, int depth, std::size_t fit) {
    const Tree tree(profile);
    if (depth > 0) {
        return tree.rows(depth);
    }
    auto best = tree.rows(1);
    for (int deeper = 2;; ++deeper) {
        auto rows = tree.rows(deeper);
        if (rows.size() > fit || rows.size() == best.size()) {
            return best;
        }
        best = std::move(rows);
    }
}

std::vector<std::string> stack_of(const Profile& profile, std::size_t part) {
    const auto& at = profile.parts[part];
    std::vector<std::string> stack;
    if (at.inside != ProfilePart::none) {
        stack = stack_of(profile, at.inside);
    } else if (!at.module.empty()) {
        stack = split(at.module, '.');
    }
    stack.push_back(label_of(at));
    return stack;
}

}  // namespace trocar::profiles
