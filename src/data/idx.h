#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "trocar/tensor.h"

// An idx file: two zero bytes, a byte for the type of the elements (8: unsigned bytes), one for the
// number of dimensions, these as 32-bit big-endian numbers, and the elements, the last dimension
// running fastest. MNIST's are gzipped.

namespace trocar::data {

struct Idx {
    Shape shape;
    Bytes elements;                     // as many as the shape says
    std::shared_ptr<const void> owner;  // keeps them
};

bool is_idx(Bytes file);
bool is_gzip(Bytes file);

// Arrays of unsigned bytes; gzipped ones are unpacked. `owner` keeps `file`. Throws Error(input),
// Error(unsupported) on other types.
Idx read_idx(Bytes file, std::shared_ptr<const void> owner, std::string_view where);
Idx read_idx(const std::filesystem::path& path);

// Unpacks a gzip file, but no more than `most` bytes of it. Throws Error(input).
std::vector<std::byte> unpack_gzip(Bytes file, std::size_t most, std::string_view where);

}  // namespace trocar::data
