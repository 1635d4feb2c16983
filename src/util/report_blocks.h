#pragma once

#include <string>
#include <variant>
#include <vector>

#include "trocar/report.h"

namespace trocar {

using Block = std::variant<const Section*, const Table*>;

// The sections and tables of a report in the order in which to print them: those that
// `Report::order` names, then the other sections, then the other tables. Hidden tables are left
// out.
std::vector<Block> blocks(const Report& report);

// The rows of this table have a depth worth writing: a column of it is a tree.
bool is_tree(const Table& table);

// A number as it is: every digit that is needed to read the same number again.
std::string exact(double value);

}  // namespace trocar
