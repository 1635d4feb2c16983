#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/value.h"

namespace trocar {

// A file descriptor that is closed at the end.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { reset(); }
    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    int release();
    void reset();

private:
    int fd_ = -1;
};

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
