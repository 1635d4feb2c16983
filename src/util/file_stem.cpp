#include "util/file_stem.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace trocar {

namespace {

// File systems allow 255 bytes; the suffix and a number must fit too.
constexpr std::size_t longest_stem = 200;

bool is_plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || byte >= 0x80;
}

std::string plain(std::string_view name) {
    std::string stem(name.substr(0, longest_stem));
    std::replace_if(
        stem.begin(), stem.end(), [](char c) { return !is_plain(c); }, '_');
    if (stem.empty()) {
        return "output";
    }
    if (stem.front() == '.' || stem.front() == '-') {
        stem.front() = '_';
    }
    return stem;
}

}  // namespace

std::string FileStems::add(std::string_view name) {
    const auto wanted = plain(name);
    auto stem = wanted;
    for (int number = 2; !taken_.insert(lower(stem)).second; ++number) {
        stem = fmt::format("{}_{}", wanted, number);
    }
    return stem;
}

}  // namespace trocar
