#include "mapping/rule_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar {

namespace mapping {

namespace {

std::shared_ptr<const RuleFile> read_embedded(std::size_t place) {
    static std::mutex mutex;
    static std::vector<std::shared_ptr<const RuleFile>> read(embedded_rules_count);
    const std::lock_guard lock(mutex);
    auto& file = read[place];
    if (file == nullptr) {
        const auto& one = embedded_rules[place];
        file = std::make_shared<const RuleFile>(
            parse_rules(one.text, fmt::format("{}.map", one.name)));
    }
    return file;
}

// The one of this build for two dialects; nullptr: there is none.
std::shared_ptr<const RuleFile> own_rules(const std::string& from, const std::string& to) {
    const auto name = fmt::format("{}-{}", from, to);
    for (std::size_t i = 0; i < embedded_rules_count; ++i) {
        if (embedded_rules[i].name == name) {
            return read_embedded(i);
        }
    }
    return nullptr;
}

// Those of this build with more rules of the two, by theme.
RuleFiles further_own_rules(const std::string& from, const std::string& to) {
    const auto name = fmt::format("{}-{}.", from, to);
    RuleFiles files;
    for (std::size_t i = 0; i < embedded_rules_count; ++i) {
        if (std::string_view(embedded_rules[i].name).starts_with(name)) {
            files.push_back(read_embedded(i));
        }
    }
    return files;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> mapped_dialects() {
    std::vector<std::pair<std::string, std::string>> all;
    for (std::size_t i = 0; i < embedded_rules_count; ++i) {
        if (std::string_view(embedded_rules[i].name).find('.') != std::string_view::npos) {
            continue;
        }
        const auto parts = split(embedded_rules[i].name, '-');
        all.emplace_back(parts.front(), parts.back());
    }
    return all;
}

RuleFiles rule_files(const std::string& from, const std::string& to,
                     const std::vector<std::filesystem::path>& further) {
    RuleFiles files;
    for (const auto& path : further) {
        auto file = parse_rules(read_file(path), path.string());
        if (file.from != from || file.to != to) {
            throw Error(Fault::input, fmt::format("'{}' maps {} to {}, not {} to {}", path.string(),
                                                  file.from, file.to, from, to));
        }
        files.push_back(std::make_shared<const RuleFile>(std::move(file)));
    }
    for (auto& part : further_own_rules(from, to)) {
        files.push_back(std::move(part));
    }
    if (auto own = own_rules(from, to)) {
        files.push_back(std::move(own));
    }
    if (files.empty()) {
        std::vector<std::string> known;
        for (const auto& [source, target] : mapped_dialects()) {
            known.push_back(fmt::format("{} to {}", source, target));
        }
        throw Error(Fault::unsupported,
                    fmt::format("there are no rules that map {} to {}", from, to),
                    fmt::format("there are rules for {}", join(known, ", ")));
    }
    return files;
}

}  // namespace mapping

namespace {

using mapping::Expression;
using mapping::RuleFiles;

// Types of the ops in an expression, and in the definitions that it calls.
class OpsMade {
public:
    explicit OpsMade(const RuleFiles& files) : files_(files) {}

    void look(const Expression* at) {
        if (at == nullptr) {
            return;
        }
        if (at->kind == Expression::Kind::op) {
            found_.insert(at->text);
        }
        if (at->kind == Expression::Kind::call && called_.insert(at->text).second) {
            for (const auto& file : files_) {
                if (const auto made = file->definitions.find(at->text);
                    made != file->definitions.end()) {
                    look(made->second.value.get());
                    break;
                }
            }
        }
        for (const auto& child : at->children) {
            look(child.get());
        }
        for (const auto& [name, child] : at->named) {
            look(child.get());
        }
    }
    std::vector<std::string> found() const { return {found_.begin(), found_.end()}; }

private:
    const RuleFiles& files_;
    std::set<std::string> found_;
    std::set<std::string> called_;
};

}  // namespace

std::vector<RuleInfo> rule_infos(const std::string& from, const std::string& to,
                                 const std::vector<std::filesystem::path>& rules) {
    const auto files = mapping::rule_files(from, to, rules);
    std::vector<RuleInfo> all;
    for (const auto& file : files) {
        for (const auto& rule : file->rules) {
            RuleInfo info;
            info.name = rule->name;
            for (const auto& op : rule->match) {
                info.matches.push_back(fmt::format("{}", join(op.types, " | ")));
            }
            OpsMade made(files);
            for (const auto& statement : rule->body) {
                made.look(statement.value.get());
            }
            info.makes = made.found();
            info.tests = rule->tests.size();
            info.untested =
                rule->untested.empty() && rule->tests.empty() ? file->untested : rule->untested;
            all.push_back(std::move(info));
        }
    }
    return all;
}

std::vector<MappingInfo> mappings() {
    std::vector<MappingInfo> all;
    for (const auto& [from, to] : mapping::mapped_dialects()) {
        std::set<std::string> types;
        for (const auto& file : mapping::rule_files(from, to, {})) {
            for (const auto& rule : file->rules) {
                types.insert(rule->match.back().types.begin(), rule->match.back().types.end());
            }
        }
        all.push_back({from, to, {types.begin(), types.end()}});
    }
    return all;
}

bool needs_types(const std::string& from, const std::string& to) {
    const auto own = mapping::own_rules(from, to);
    return own != nullptr && own->needs_types;
}

bool can_map(const std::string& from, const std::string& to) {
    const auto all = mapping::mapped_dialects();
    return std::find(all.begin(), all.end(), std::pair{from, to}) != all.end();
}

}  // namespace trocar
