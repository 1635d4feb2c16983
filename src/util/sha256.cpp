#include "util/sha256.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "trocar/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace trocar {

namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

using State = std::array<std::uint32_t, 8>;

std::uint32_t big_endian(const std::byte* at) {
    return std::to_integer<std::uint32_t>(at[0]) << 24 |
           std::to_integer<std::uint32_t>(at[1]) << 16 |
           std::to_integer<std::uint32_t>(at[2]) << 8 | std::to_integer<std::uint32_t>(at[3]);
}

void mix_portable(State& state, const std::byte* at, std::size_t blocks) {
    for (; blocks > 0; --blocks, at += 64) {
        std::array<std::uint32_t, 64> w;
        for (std::size_t i = 0; i < 16; ++i) {
            w[i] = big_endian(at + 4 * i);
        }
        for (std::size_t i = 16; i < 64; ++i) {
            const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
            const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        auto [a, b, c, d, e, f, g, h] = state;
        for (std::size_t i = 0; i < 64; ++i) {
            const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
            const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
            const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
            const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d + t1;
            d = c;
            c = b;
            b = a;
            a = t1 + t2;
        }
        const State next{a, b, c, d, e, f, g, h};
        for (std::size_t i = 0; i < 8; ++i) {
            state[i] += next[i];
        }
    }
}

#if defined(__x86_64__)

bool has_sha_instructions() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0 || (c & bit_SSSE3) == 0) {
        return false;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 29)) != 0;
}

// The instructions hold the state as the words {a, b, e, f} and {c, d, g, h}, highest first, and do
// two rounds each; four rounds take one vector of message words.
__attribute__((target("sha,sse4.1,ssse3"))) void mix_x86(State& state, const std::byte* at,
                                                         std::size_t blocks) {
    const auto load = [](const void* from) __attribute__((target("sse4.1"))) {
        return _mm_loadu_si128(static_cast<const __m128i*>(from));
    };
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const auto word = [&](std::size_t i) { return static_cast<int>(state[i]); };
    __m128i abef = _mm_set_epi32(word(0), word(1), word(4), word(5));
    __m128i cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
    for (; blocks > 0; --blocks, at += 64) {
        const __m128i abef_before = abef;
        const __m128i cdgh_before = cdgh;
        __m128i w[4];
        for (std::size_t group = 0; group < 16; ++group) {
            __m128i& now = w[group % 4];  // words 4·group…, in place of those 16 before
            if (group < 4) {
                now = _mm_shuffle_epi8(load(at + 16 * group), swap);
            } else {
                const __m128i second = w[(group + 1) % 4];
                const __m128i third = w[(group + 2) % 4];
                const __m128i last = w[(group + 3) % 4];
                const __m128i seven_back = _mm_alignr_epi8(last, third, 4);
                now = _mm_sha256msg2_epu32(
                    _mm_add_epi32(_mm_sha256msg1_epu32(now, second), seven_back), last);
            }
            const __m128i sum = _mm_add_epi32(now, load(round_constants.data() + 4 * group));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    alignas(16) std::array<std::uint32_t, 4> high;
    alignas(16) std::array<std::uint32_t, 4> low;
    _mm_store_si128(reinterpret_cast<__m128i*>(high.data()), abef);
    _mm_store_si128(reinterpret_cast<__m128i*>(low.data()), cdgh);
    state = {high[3], high[2], low[3], low[2], high[1], high[0], low[1], low[0]};
}

#else

bool has_sha_instructions() {
    return false;
}

void mix_x86(State& state, const std::byte* at, std::size_t blocks) {
    mix_portable(state, at, blocks);
}

#endif

}  // namespace

// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
Sha256::Sha256(Using what)
    : portable_(what == Using::portable || !has_sha_instructions()),
      state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::mix(const std::byte* at, std::size_t blocks) {
    portable_ ? mix_portable(state_, at, blocks) : mix_x86(state_, at, blocks);
}

void Sha256::add(Bytes bytes) {
    total_ += bytes.size();
    if (filled_ > 0) {
        const auto count = std::min(bytes.size(), block_.size() - filled_);
        std::copy_n(bytes.begin(), count, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
        filled_ += count;
        bytes = bytes.subspan(count);
        if (filled_ < block_.size()) {
            return;
        }
        mix(block_.data(), 1);
        filled_ = 0;
    }
    mix(bytes.data(), bytes.size() / 64);
    const auto rest = bytes.subspan(bytes.size() / 64 * 64);
    std::copy(rest.begin(), rest.end(), block_.begin());
    filled_ = rest.size();
}

std::string Sha256::hex() {
    const auto bits = total_ * 8;
    std::vector<std::byte> end(filled_ < 56 ? 64 - filled_ : 128 - filled_);
    end[0] = std::byte{0x80};
    for (std::size_t i = 0; i < 8; ++i) {
        end[end.size() - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
    }
    add(end);
    std::string digits;
    for (const auto word : state_) {
        digits += fmt::format("{:08x}", word);
    }
    return digits;
}

std::string sha256_of(Bytes bytes) {
    Sha256 hash;
    hash.add(bytes);
    return hash.hex();
}
std::string sha256_of(std::string_view text) {
    return sha256_of(std::as_bytes(std::span(text)));
}

std::string sha256_of_file(const std::filesystem::path& path) {
    const auto fail = [&] {
        throw Error(Fault::input,
                    fmt::format("cannot read '{}': {}", path.string(), std::strerror(errno)));
    };
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fail();
    }
    Sha256 hash;
    std::vector<std::byte> buffer(std::size_t{1} << 18);
    for (;;) {
        const auto count = ::read(fd, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            const int failure = errno;
            ::close(fd);
            if (count < 0) {
                errno = failure;
                fail();
            }
            return hash.hex();
        }
        hash.add(Bytes(buffer).first(static_cast<std::size_t>(count)));
    }
}

}  // namespace trocar
