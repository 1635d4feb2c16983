#pragma once

#include <string>

#include "store/database.h"

namespace trocar::store {

// The row that a statement stands at, without an end of line. Bytes are hexadecimal digits; what is
// NULL is an empty field or null; JSON has no infinity, so that it is text there.
std::string csv_names(const Statement& row);  // of its columns
std::string csv_row(const Statement& row);
std::string json_row(const Statement& row);  // an object

}  // namespace trocar::store
