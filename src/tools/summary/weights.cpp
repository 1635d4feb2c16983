#include "tools/summary/weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tools/summary/pattern.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::summary {
namespace {

// An element is zero when `(word & mask) == code`.
struct ZeroTest {
    std::size_t bits = 0;  // of an element; 0: no such test
    std::uint64_t mask = 0;
    std::uint64_t code = 0;
};

ZeroTest zero_test(DType dtype, std::uint64_t code) {
    std::size_t width = bits(dtype);
    std::uint64_t all = width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    switch (dtype) {
        case DType::f8e8m0:  // has no zero
        case DType::c128:
        case DType::f6e2m3:
        case DType::f6e3m2:
            return {};
        case DType::c64:
            return {64, 0x7fffffff7fffffff, 0};
        case DType::f8e4m3fnuz:  // minus zero is NaN there
        case DType::f8e5m2fnuz:
            return {width, all, 0};
        default:
            break;
    }
    bool usable =
        width == 2 || width == 4 || width == 8 || width == 16 || width == 32 || width == 64;
    if (!usable) {
        return {};
    }
    return is_float(dtype) ? ZeroTest{width, all >> 1, 0} : ZeroTest{width, all, code & all};
}

template <class Word>
std::uint64_t count_words(Bytes bytes, ZeroTest test) {
    const auto mask = static_cast<Word>(test.mask);
    const auto code = static_cast<Word>(test.code);
    std::size_t count = bytes.size() / sizeof(Word);
    const std::byte* at = bytes.data();
    std::uint64_t zeros = 0;
    while (count >
           0) {  // short runs with a counter as wide as the words: the compiler vectorizes them
        std::size_t run = std::min<std::size_t>(count, sizeof(Word) == 1 ? 255 : 4096);
        Word found = 0;
        for (std::size_t i = 0; i < run; ++i) {
            Word word;
            std::memcpy(&word, at + i * sizeof(Word), sizeof(Word));
            found = static_cast<Word>(found + ((word & mask) == code ? 1 : 0));
        }
        zeros += found;
        at += run * sizeof(Word);
        count -= run;
    }
    return zeros;
}

// Packed elements, `elements` of them from the low bits of the first byte.
std::uint64_t count_packed(Bytes bytes, ZeroTest test, std::size_t elements) {
    std::size_t lanes = 8 / test.bits;
    std::uint8_t zeros_of[256];
    for (unsigned byte = 0; byte < 256; ++byte) {
        unsigned found = 0;
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            found += ((byte >> (lane * test.bits)) & test.mask) == test.code ? 1 : 0;
        }
        zeros_of[byte] = static_cast<std::uint8_t>(found);
    }
    std::uint64_t zeros = 0;
    std::size_t whole = std::min(elements / lanes, bytes.size());
    for (std::size_t i = 0; i < whole; ++i) {
        zeros += zeros_of[std::to_integer<unsigned>(bytes[i])];
    }
    for (std::size_t lane = 0; lane < elements % lanes && whole < bytes.size(); ++lane) {
        unsigned byte = std::to_integer<unsigned>(bytes[whole]);
        zeros += ((byte >> (lane * test.bits)) & test.mask) == test.code ? 1 : 0;
    }
    return zeros;
}

std::uint64_t count_zeros(Bytes bytes, ZeroTest test, std::size_t elements) {
    switch (test.bits) {
        case 8:
            return count_words<std::uint8_t>(bytes, test);
        case 16:
            return count_words<std::uint16_t>(bytes, test);
        case 32:
            return count_words<std::uint32_t>(bytes, test);
        case 64:
            return count_words<std::uint64_t>(bytes, test);
        default:
            return count_packed(bytes, test, elements);
    }
}

// Writes 1 for each element that is zero.
void flag_zeros(Bytes bytes, ZeroTest test, std::span<std::uint8_t> flags) {
    for (std::size_t i = 0; i < flags.size(); ++i) {
        std::uint64_t word = 0;
        if (test.bits >= 8) {
            std::memcpy(&word, bytes.data() + i * (test.bits / 8), test.bits / 8);
        } else {
            std::size_t lanes = 8 / test.bits;
            word = std::to_integer<std::uint64_t>(bytes[i / lanes]) >> (i % lanes * test.bits);
        }
        flags[i] = (word & test.mask) == test.code ? 1 : 0;
    }
}

// Calls `use(part, first element, elements)` for the bytes in parts, and gives their pages back.
template <class Use>
void in_parts(Bytes bytes, std::size_t bits_each, std::size_t elements, Use use) {
    constexpr std::size_t part = std::size_t{1} << 22;  // whole elements of every width
    std::size_t first = 0;
    for (std::size_t at = 0; at < bytes.size(); at += part) {
        Bytes here = bytes.subspan(at, std::min(part, bytes.size() - at));
        std::size_t count = std::min(here.size() * 8 / bits_each, elements - first);
        use(here, first, count);
        first += count;
        release_pages(here);
    }
}

}  // namespace

Zeros scan(const ScanJob& job) {
    Zeros result;
    const Constant& c = *job.constant;
    if (!job.skip.empty()) {
        result.unavailable = job.skip;
        return result;
    }
    try {
        result.elements = c.element_count();
        if (c.is_sparse()) {
            result.zeros = result.elements -
                           std::min<std::uint64_t>(result.elements, c.values().element_count());
            result.pattern = "COO";
            return result;
        }
        DType dtype = job.as == DType::undefined ? c.dtype() : job.as;
        ZeroTest test = zero_test(dtype, job.zero_code);
        if (test.bits == 0) {
            result.unavailable = "zeros of " + name(dtype) + " are not counted";
            return result;
        }
        Bytes bytes = c.bytes();
        if (job.as != DType::undefined) {
            result.elements = bytes.size() * 8 / test.bits;
        }
        in_parts(bytes, test.bits, result.elements,
                 [&](Bytes part, std::size_t, std::size_t count) {
                     result.zeros += count_zeros(part, test, count);
                 });
        if (result.zeros * 100 < result.elements || result.elements == 0) {
            result.pattern = "dense";
        } else if (result.zeros == result.elements) {
            result.pattern = "all zero";
        } else if (!job.axes || job.as != DType::undefined) {
            result.pattern = "unstructured";
        } else {
            PatternFinder finder(c.shape(), *job.axes);
            std::vector<std::uint8_t> flags;
            in_parts(bytes, test.bits, result.elements,
                     [&](Bytes part, std::size_t first, std::size_t count) {
                         flags.resize(count);
                         flag_zeros(part, test, flags);
                         finder.feed(flags, first);
                     });
            result.pattern = finder.pattern(result.zeros);
        }
    } catch (const Error& e) {
        result = {};
        result.unavailable = e.what();
    }
    return result;
}

std::vector<Zeros> scan_all(std::span<const ScanJob> jobs, int threads) {
    std::vector<Zeros> results(jobs.size());
    std::atomic<std::size_t> next = 0;
    auto work = [&] {
        for (std::size_t i = next++; i < jobs.size(); i = next++) {
            results[i] = scan(jobs[i]);
        }
    };
    std::vector<std::jthread> helpers;
    for (int i = 1; i < threads && static_cast<std::size_t>(i) < jobs.size(); ++i) {
        helpers.emplace_back(work);
    }
    work();
    helpers.clear();
    return results;
}

}  // namespace trocar::summary
