// Reads arbitrary bytes as an idx file, packed or not. What can be read has as many elements as its
// shape says.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "data/idx.h"
#include "trocar/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace trocar;
    try {
        const auto idx = data::read_idx(std::as_bytes(std::span(data, size)), nullptr, "'file'");
        if (element_count(idx.shape) != idx.elements.size()) {
            std::abort();
        }
    } catch (const Error& e) {
        if (e.fault() != Fault::input && e.fault() != Fault::unsupported) {
            std::abort();
        }
    }
    return 0;
}
