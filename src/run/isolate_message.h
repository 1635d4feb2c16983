#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "trocar/value.h"

namespace trocar {

// What parent and child tell each other. The bytes of tensors travel in shared memory: copied
// once by the sender, read in place by the receiver.
struct Message {
    enum class Kind : std::uint32_t { ready, run, result, failure, log };
    Kind kind = Kind::ready;
    std::uint32_t detail = 0;  // Fault of a failure, LogLevel of a log line
    std::string text;          // sentence or line
    std::string hint;
    std::vector<NamedValue> values;
};

// Sends a whole message. False: the other side is gone. Throws Error(engine) when a value cannot
// leave the process (opaque, sparse, on another device) or there is no memory for it; nothing was
// sent then.
bool send_message(int socket, const Message& message);

// Waits for a message on `socket`. False: the other side is gone. Throws Error(engine) on a message
// that makes no sense: what the other side sends is not trusted.
bool receive_message(int socket, Message& message);

}  // namespace trocar
