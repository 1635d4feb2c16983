#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/data.h"

namespace trocar::data {

// The names of what is in a folder, sorted, without those that begin with a dot.
struct Listing {
    std::vector<std::string> files;
    std::vector<std::string> folders;
};
Listing listing(const std::filesystem::path& folder);  // throws Error(input)

bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// "cat.PNG" ends with ".png".
bool has_suffix(std::string_view name, std::string_view suffix);

// 'path': for messages.
std::string quoted(const std::filesystem::path& path);

// The rows of a file of comma-separated values, at least one field each; empty lines are left out.
// Fields may stand in double quotes. Throws Error(input).
std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& path);

// A label as it is written, 0 or more; throws Error(input) that begins with `where`.
std::int64_t parse_label(std::string_view text, std::string_view where);

// Wanted is the part to train with, and not the usual one to test with.
bool wants_train(const DataOptions& options);  // throws Error(usage) on another word

}  // namespace trocar::data
