// Reads arbitrary bytes as a file of CIFAR-10 and of CIFAR-100.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "data/cifar.h"
#include "trocar/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace trocar;
    for (const bool hundred : {false, true}) {
        try {
            const auto bytes = std::as_bytes(std::span(data, size));
            for (const auto& record : data::read_cifar(bytes, hundred, "'file'")) {
                if (record.planes.size() != data::cifar_pixels || record.label < 0) {
                    std::abort();
                }
            }
        } catch (const Error& e) {
            if (e.fault() != Fault::input) {
                std::abort();
            }
        }
    }
    return 0;
}
