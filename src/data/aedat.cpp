#include "data/aedat.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"

namespace trocar::data {

namespace {

constexpr std::size_t header_bytes = 28;
constexpr std::int64_t polarity_type = 1;

std::uint32_t word(Bytes bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[at + i]); };
    return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

// Where the packets begin.
std::size_t after_header(Bytes file, std::string_view where) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    constexpr std::string_view magic = "#!AER-DAT";
    if (!text.starts_with(magic)) {
        throw Error(Fault::input, fmt::format("{} is no AEDAT recording", where));
    }
    const auto version = text.substr(magic.size(), 3);
    if (version != "3.1") {
        throw Error(Fault::unsupported,
                    fmt::format("{} is AEDAT {}; 3.1 is what is read", where,
                                version.substr(0, version.find_first_not_of("0123456789."))),
                    "bin the events yourself and give them as .npz");
    }
    std::size_t at = 0;
    while (at < text.size() && text[at] == '#') {
        const auto end = text.find('\n', at);
        if (end == std::string_view::npos) {
            throw Error(Fault::input, fmt::format("{} ends within its header", where));
        }
        const bool last = text.substr(at, end - at).starts_with("#!END-HEADER");
        at = end + 1;
        if (last) {
            break;
        }
    }
    return at;
}

// The header of the packet at `at`, checked against what remains of the file.
struct RecordingHeader {
    std::int64_t type = 0;
    std::uint64_t body = 0;  // bytes that follow
    EventPacket packet;
};

RecordingHeader parse_header(Bytes file, std::size_t at, std::string_view where) {
    const auto fail = [&](std::string_view what) {
        return Error(Fault::input, fmt::format("{}: the packet at byte {} {}", where, at, what),
                     "the recording was probably cut short: get it anew");
    };
    if (file.size() - at < header_bytes) {
        throw fail("ends within its header");
    }
    const auto number = [&](std::size_t field) {
        return static_cast<std::int32_t>(word(file, at + field));
    };
    const auto event_bytes = number(4);
    const auto overflow = number(12);
    const auto capacity = number(16);
    const auto events = number(20);
    if (event_bytes <= 0 || capacity < 0 || events < 0 || events > capacity || overflow < 0) {
        throw fail("has a header that cannot be");
    }
    RecordingHeader header;
    header.type = word(file, at) & 0xffff;
    header.body = static_cast<std::uint64_t>(event_bytes) * static_cast<std::uint64_t>(capacity);
    if (header.body > file.size() - at - header_bytes) {
        throw fail(fmt::format("declares {} bytes, of which {} are there", header.body,
                               file.size() - at - header_bytes));
    }
    if (header.type == polarity_type && (event_bytes < 8 || number(8) != 4)) {
        throw fail("has polarity events in a form that is not AEDAT 3.1");
    }
    header.packet = {.at = at + header_bytes,
                     .events = static_cast<std::size_t>(events),
                     .event_bytes = static_cast<std::size_t>(event_bytes),
                     .time_base = std::int64_t{overflow} << 31};
    return header;
}

}  // namespace

std::vector<EventPacket> event_packets(Bytes file, std::string_view where) {
    std::vector<EventPacket> packets;
    for (auto at = after_header(file, where); at < file.size();) {
        auto header = parse_header(file, at, where);
        at += header_bytes + header.body;
        auto& packet = header.packet;
        if (header.type != polarity_type) {
            continue;
        }
        bool any = false;
        for_each_event(file, packet, [&](const Event& event) {
            packet.first = any ? std::min(packet.first, event.microseconds) : event.microseconds;
            packet.last = any ? std::max(packet.last, event.microseconds) : event.microseconds;
            any = true;
        });
        if (any) {
            packets.push_back(packet);
        }
    }
    return packets;
}

void for_each_event(Bytes file, const EventPacket& packet,
                    const std::function<void(const Event&)>& use) {
    for (std::size_t i = 0; i < packet.events; ++i) {
        const auto at = packet.at + i * packet.event_bytes;
        const auto data = word(file, at);
        if ((data & 1) == 0) {
            continue;
        }
        use({.microseconds = packet.time_base + (word(file, at + 4) & 0x7fffffff),
             .x = static_cast<std::uint16_t>(data >> 17),
             .y = static_cast<std::uint16_t>(data >> 2 & 0x7fff),
             .on = (data & 2) != 0});
    }
}

}  // namespace trocar::data
