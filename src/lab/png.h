#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace trocar::lab {

// A picture in shades of grey, row by row. Throws Error(input) when it cannot be written.
void write_png(const std::filesystem::path& path, std::size_t width, std::size_t height,
               const std::vector<std::uint8_t>& shades);

}  // namespace trocar::lab
