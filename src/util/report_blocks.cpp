#include "util/report_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace trocar {

std::vector<Block> blocks(const Report& report) {
    std::vector<Block> all;
    std::set<const void*> taken;
    const auto take = [&](const auto& block) {
        if (taken.insert(&block).second) {
            all.emplace_back(&block);
        }
    };
    const auto take_named = [&](const auto& list, const std::string& key) {
        for (const auto& block : list) {
            if (block.key == key) {
                take(block);
            }
        }
    };
    for (const auto& key : report.order) {
        take_named(report.sections, key);
        take_named(report.tables, key);
    }
    std::for_each(report.sections.begin(), report.sections.end(), take);
    std::for_each(report.tables.begin(), report.tables.end(), take);
    std::erase_if(all, [](const Block& block) {
        const auto* table = std::get_if<const Table*>(&block);
        return table != nullptr && (*table)->hidden;
    });
    return all;
}

bool is_tree(const Table& table) {
    return std::any_of(table.columns.begin(), table.columns.end(),
                       [](const Column& column) { return column.tree; });
}

std::string exact(double value) {
    return fmt::format("{}", value);
}

}  // namespace trocar
