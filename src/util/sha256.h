#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "trocar/tensor.h"

namespace trocar {

// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
public:
    enum class Using { best, portable };  // the CPU's instructions for it where it has them
    explicit Sha256(Using what = Using::best);
    void add(Bytes bytes);
    std::string hex();  // of all that was added, 64 lower-case digits; call once, at the end

private:
    void mix(const std::byte* at, std::size_t blocks);
    bool portable_;
    std::array<std::uint32_t, 8> state_;
    std::array<std::byte, 64> block_{};
    std::size_t filled_ = 0;   // bytes of `block_` that wait
    std::uint64_t total_ = 0;  // bytes added
};

std::string sha256_of(Bytes bytes);
std::string sha256_of(std::string_view text);
// Of the bytes of a file. Throws Error(input) when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace trocar
