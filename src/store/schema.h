#pragma once

#include <string>
#include <vector>

namespace trocar::store {

// In the header of the file: what wrote it ("Troc"), and by which schema.
constexpr int application = 0x54726f63;
constexpr int schema_version = 3;

// The statements that make an empty file a store; docs/inject-store.md explains them.
const char* schema();

// Tables, then views.
const std::vector<std::string>& table_names();

}  // namespace trocar::store
