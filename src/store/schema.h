#pragma once

#include <string>
#include <vector>

namespace trocar::store {

// In the header of the file: what wrote it ("Troc"), and by which schema.
constexpr int application = 0x54726f63;
constexpr int schema_version = 2;

// The statements that make an empty file a store; docs/inject-store.md explains them.
const char* schema();

// Those that make a store of the version before, which had no named metrics, and neither crash nor
// hang, one of this version.
const char* upgrade();

// Tables, then views.
const std::vector<std::string>& table_names();

}  // namespace trocar::store
