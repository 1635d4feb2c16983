// Reads arbitrary bytes as an AEDAT recording. Events lie in the time that their packet says.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "data/aedat.h"
#include "trocar/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace trocar;
    const auto bytes = std::as_bytes(std::span(data, size));
    try {
        for (const auto& packet : data::event_packets(bytes, "'file'")) {
            data::for_each_event(bytes, packet, [&](const data::Event& event) {
                if (event.microseconds < packet.first || event.microseconds > packet.last ||
                    event.x > 0x7fff || event.y > 0x7fff) {
                    std::abort();
                }
            });
        }
    } catch (const Error& e) {
        if (e.fault() != Fault::input && e.fault() != Fault::unsupported) {
            std::abort();
        }
    }
    return 0;
}
