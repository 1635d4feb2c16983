#include "formats/executorch/kernels.h"

#include <map>
#include <tuple>

#include "util/text.h"

namespace trocar::executorch {

namespace {

constexpr std::string_view aten = "aten";

// "dim:I?=none"
Parameter parse_parameter(std::string_view text) {
    Parameter made;
    const auto colon = text.find(':');
    made.name = text.substr(0, colon);
    text.remove_prefix(colon + 1);
    made.list = text.front() >= 'A' && text.front() <= 'Z';
    made.kind = made.list ? static_cast<char>(text.front() + 32) : text.front();
    text.remove_prefix(1);
    for (; !text.empty() && text.front() != '='; text.remove_prefix(1)) {
        made.optional = made.optional || text.front() == '?';
        made.changed = made.changed || text.front() == '!';
    }
    if (!text.empty()) {
        made.otherwise = text.substr(1);
    }
    return made;
}

// "add.out Tensor self:t other:t alpha:n=1 > out:t"
Kernel parse_kernel(const std::string& line) {
    Kernel made;
    std::size_t place = 0;
    auto* into = &made.arguments;
    for (const auto& word : split(line, ' ')) {
        if (place == 0) {
            const auto colons = word.find("::");
            const bool named = colons != std::string::npos;
            made.domain = named ? word.substr(0, colons) : std::string();
            const auto rest = named ? word.substr(colons + 2) : std::string(word);
            const auto dot = rest.find('.');
            made.type = rest.substr(0, dot);
            made.in_file = dot == std::string::npos ? std::string() : rest.substr(dot + 1);
        } else if (place == 1) {
            made.overload = word;
        } else if (word == ">") {
            into = &made.results;
        } else if (!word.empty()) {
            into->push_back(parse_parameter(word));
        }
        ++place;
    }
    return made;
}

struct Table {
    std::vector<Kernel> kernels;
    using Key = std::tuple<std::string, std::string, std::string>;
    std::map<Key, const Kernel*> in_files;
    std::map<Key, const Kernel*> in_graphs;

    Table() {
        std::vector<std::string> lines;
        for (const auto& line : split(kernel_table, '\n')) {
            if (line.starts_with("  ")) {
                lines.back() += std::string(line.substr(1));
            } else if (!line.empty()) {
                lines.emplace_back(line);
            }
        }
        kernels.reserve(lines.size());
        for (const auto& line : lines) {
            const auto& kernel = kernels.emplace_back(parse_kernel(line));
            in_files[{kernel.domain, kernel.type, kernel.in_file}] = &kernel;
            in_graphs[{kernel.domain, kernel.type, kernel.overload}] = &kernel;
        }
    }
    static const Table& own() {
        static const Table table;
        return table;
    }
};

const Kernel* find(const std::map<Table::Key, const Kernel*>& in, std::string_view domain,
                   std::string_view type, std::string_view overload) {
    const auto at = in.find({std::string(domain == aten ? std::string_view() : domain),
                             std::string(type), std::string(overload)});
    return at == in.end() ? nullptr : at->second;
}

}  // namespace

bool Kernel::returns() const {
    if (domain == "executorch_prim") {
        return false;
    }
    return results.empty() ? !arguments.empty() && arguments[0].changed : results[0].kind == 't';
}

std::string Kernel::name_in_file() const {
    return (domain.empty() ? std::string(aten) : domain) + "::" + type;
}

const Kernel* find_kernel(std::string_view name, std::string_view overload_in_file) {
    const auto colons = name.find("::");
    if (colons == std::string_view::npos) {
        return nullptr;
    }
    return find(Table::own().in_files, name.substr(0, colons), name.substr(colons + 2),
                overload_in_file);
}

const Kernel* kernel_for(std::string_view domain, std::string_view type,
                         std::string_view overload) {
    return find(Table::own().in_graphs, domain, type, overload);
}

}  // namespace trocar::executorch
