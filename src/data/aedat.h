#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "trocar/tensor.h"

// AEDAT 3.1: lines that begin with '#', the first "#!AER-DAT3.1", up to "#!END-HEADER"; then
// packets. A packet has a header of 28 bytes, little-endian: type (i16), source (i16), bytes of an
// event, where in it the timestamp is, how often timestamps of 31 bits have run over, capacity,
// events, valid events (i32 each), and as many events as its capacity says. Of polarity events
// (type 1) the first 32 bits are, from the lowest: valid, polarity, 15 bits y, 15 bits x; then the
// timestamp in microseconds.

namespace trocar::data {

struct Event {
    std::int64_t microseconds = 0;
    std::uint16_t x = 0;
    std::uint16_t y = 0;
    bool on = false;
};

// A packet of polarity events in the file.
struct EventPacket {
    std::size_t at = 0;  // of the first event
    std::size_t events = 0;
    std::size_t event_bytes = 0;
    std::int64_t time_base = 0;  // microseconds
    std::int64_t first = 0;      // timestamps: the least, the greatest
    std::int64_t last = 0;
};

// The packets of polarity events of a file; others are left out. Throws Error(input), or
// Error(unsupported) on other versions of AEDAT.
std::vector<EventPacket> event_packets(Bytes file, std::string_view where);

// Calls `use` with the valid events of a packet.
void for_each_event(Bytes file, const EventPacket& packet,
                    const std::function<void(const Event&)>& use);

}  // namespace trocar::data
