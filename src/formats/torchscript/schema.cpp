#include "formats/torchscript/schema.h"

#include <unordered_map>

#include "util/text.h"

namespace trocar::torchscript {

namespace {

Schema::Argument read_argument(std::string_view text, bool by_name) {
    Schema::Argument made;
    made.by_name = by_name;
    const auto colon = text.find(':');
    made.name = text.substr(0, colon);
    auto kind = text.substr(colon + 1);
    while (kind.ends_with('=') || kind.ends_with('!') || kind.ends_with('&')) {
        made.optional = made.optional || kind.ends_with('=');
        made.written = made.written || kind.ends_with('!');
        made.viewed = made.viewed || kind.ends_with('&');
        kind.remove_suffix(1);
    }
    made.kind = kind;
    return made;
}

// "Tensor(self:T other:T * alpha:n=)T". The kind of a dictionary has a space in it.
Schema read_schema(std::string_view text) {
    Schema made;
    const auto open = text.find('(');
    const auto close = text.rfind(')');
    made.overload = text.substr(0, open);
    auto rest = text.substr(open + 1, close - open - 1);
    bool by_name = false;
    while (!rest.empty()) {
        std::size_t end = 0;
        int depth = 0;
        while (end < rest.size() && (rest[end] != ' ' || depth > 0)) {
            depth += rest[end] == '<' ? 1 : rest[end] == '>' ? -1 : 0;
            ++end;
        }
        const auto word = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (word == "*") {
            by_name = true;
        } else if (!word.empty()) {
            made.arguments.push_back(read_argument(word, by_name));
        }
    }
    const auto results = text.substr(close + 1);
    if (!results.empty()) {
        made.results = split(std::string(results), ',');
    }
    return made;
}

using Table = std::unordered_map<std::string, std::vector<Schema>>;

Table read_table() {
    Table table;
    std::string_view rest = embedded_schemas;
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        auto line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (line.empty() || line.front() == '#') {
            continue;
        }
        const auto space = line.find(' ');
        auto& overloads = table[std::string(line.substr(0, space))];
        line.remove_prefix(space + 1);
        while (!line.empty()) {
            const auto bar = std::min(line.find(" | "), line.size());
            overloads.push_back(read_schema(line.substr(0, bar)));
            line.remove_prefix(std::min(bar + 3, line.size()));
        }
    }
    return table;
}

}  // namespace

const std::vector<Schema>& schemas(const std::string& op) {
    static const Table table = read_table();
    static const std::vector<Schema> none;
    const auto found = table.find(op);
    return found == table.end() ? none : found->second;
}

}  // namespace trocar::torchscript
