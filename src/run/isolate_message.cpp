#include "run/isolate_message.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trocar/error.h"

namespace trocar {

namespace {

constexpr std::size_t alignment = 64;          // of tensors in the shared memory
constexpr std::size_t largest_text = 1 << 30;  // of a message without its tensors' bytes
constexpr int deepest = 32;                    // values inside values

struct Header {
    std::uint64_t magic = 0x7472'6f63'6172'0001;
    std::uint32_t kind = 0;
    std::uint32_t detail = 0;
    std::uint64_t size = 0;         // of what follows
    std::uint64_t shared_size = 0;  // of the shared memory that comes along; 0: none does
};

// Writes the structure of values, and collects the bytes of their tensors.
class Writer {
public:
    void number(std::uint64_t value) {
        text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void string(std::string_view value) {
        number(value.size());
        text_ += value;
    }
    void value(const Value& value, int depth = 0) {
        const auto kind = value.kind();
        number(static_cast<std::uint64_t>(kind));
        switch (kind) {
            case Value::Kind::none:
                return;
            case Value::Kind::tensor:
                tensor(value);
                return;
            case Value::Kind::sequence:
            case Value::Kind::map:
                if (depth < deepest) {
                    const auto items = value.items();
                    number(items.size());
                    for (const auto& item : items) {
                        this->value(item, depth + 1);
                    }
                    return;
                }
                [[fallthrough]];
            default:
                throw Error(Fault::engine, fmt::format("{} cannot pass from one process to another",
                                                       value_text(value)));
        }
    }
    const std::string& text() const { return text_; }
    // In shared memory, sealed; not open when there are no bytes.
    Descriptor shared() const;
    std::size_t shared_size() const { return shared_size_; }

private:
    void tensor(const Value& value) {
        const auto shape = value.shape();
        number(static_cast<std::uint64_t>(static_cast<std::int64_t>(value.dtype())));
        number(shape.size());
        for (const auto dimension : shape) {
            number(static_cast<std::uint64_t>(dimension));
        }
        if (value.dtype() == DType::string) {
            for (const auto& item : value.string_values()) {
                string(item);
            }
            return;
        }
        if (!value.device().is_host()) {
            throw Error(Fault::engine,
                        fmt::format("a tensor on {} cannot pass from one process to another",
                                    value.device().kind));
        }
        const auto bytes = value.bytes();
        number(shared_size_);
        number(bytes.size());
        if (!bytes.empty()) {
            parts_.emplace_back(shared_size_, value);
            shared_size_ += (bytes.size() + alignment - 1) / alignment * alignment;
        }
    }

    std::string text_;
    std::vector<std::pair<std::size_t, Value>> parts_;  // where in the shared memory, what
    std::size_t shared_size_ = 0;
};

[[noreturn]] void fail_shared() {
    throw Error(Fault::engine,
                fmt::format("there is no shared memory for the tensors: {}", std::strerror(errno)));
}

Descriptor Writer::shared() const {
    if (shared_size_ == 0) {
        return {};
    }
    Descriptor memory(::memfd_create("trocar-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory.is_open() || ::ftruncate(memory.get(), static_cast<off_t>(shared_size_)) != 0) {
        fail_shared();
    }
    for (const auto& [offset, value] : parts_) {
        // Written, not mapped: too little memory is then an error and no signal.
        const auto bytes = value.bytes();
        for (std::size_t done = 0; done < bytes.size();) {
            const auto count = ::pwrite(memory.get(), bytes.data() + done,
                                        std::min(bytes.size() - done, std::size_t{1} << 30),
                                        static_cast<off_t>(offset + done));
            if (count < 0 && errno == EINTR) {
                continue;
            }
            if (count <= 0) {
                fail_shared();
            }
            done += static_cast<std::size_t>(count);
        }
    }
    if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        fail_shared();
    }
    return memory;
}

[[noreturn]] void fail_message() {
    throw Error(Fault::engine, "the engine's process sent a message that makes no sense");
}

// Shared memory that came with a message, mapped for reading.
class Mapping {
public:
    Mapping(const Descriptor& memory, std::size_t size) : size_(size) {
        struct stat status {};
        const int seals = ::fcntl(memory.get(), F_GET_SEALS);
        // Without the seal the sender could shorten it under our hands.
        if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(memory.get(), &status) != 0 ||
            static_cast<std::size_t>(status.st_size) < size) {
            fail_message();
        }
        data_ = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, memory.get(), 0);
        if (data_ == MAP_FAILED) {
            fail_shared();
        }
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() { ::munmap(data_, size_); }
    Bytes bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

private:
    void* data_ = nullptr;
    std::size_t size_;
};

class Reader {
public:
    Reader(std::string_view text, std::shared_ptr<const Mapping> shared)
        : text_(text), shared_(std::move(shared)) {}

    std::uint64_t number() {
        std::uint64_t value = 0;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }
    // A number of things that take at least `each` bytes of what remains.
    std::size_t count(std::size_t each = sizeof(std::uint64_t)) {
        const auto value = number();
        if (value > text_.size() / each) {
            fail_message();
        }
        return value;
    }
    std::string string() { return std::string(take(count(1))); }
    Value value(int depth = 0) {
        const auto kind = static_cast<Value::Kind>(number());
        switch (kind) {
            case Value::Kind::none:
                return {};
            case Value::Kind::tensor:
                return tensor();
            case Value::Kind::sequence:
            case Value::Kind::map: {
                const auto items = count();
                if (depth >= deepest || (kind == Value::Kind::map && items != 2)) {
                    fail_message();
                }
                std::vector<Value> values;
                for (std::size_t i = 0; i < items; ++i) {
                    values.push_back(value(depth + 1));
                }
                return kind == Value::Kind::map
                           ? Value::map(std::move(values[0]), std::move(values[1]))
                           : Value::sequence(std::move(values));
            }
            default:
                fail_message();
        }
    }

private:
    std::string_view take(std::size_t size) {
        if (size > text_.size()) {
            fail_message();
        }
        const auto taken = text_.substr(0, size);
        text_.remove_prefix(size);
        return taken;
    }
    Value tensor() {
        const auto dtype = static_cast<DType>(static_cast<std::int32_t>(number()));
        Shape shape(count());
        for (auto& dimension : shape) {
            dimension = static_cast<std::int64_t>(number());
        }
        if (dtype == DType::string) {
            const auto strings = element_count(shape);
            if (strings > text_.size() / sizeof(std::uint64_t)) {
                fail_message();
            }
            std::vector<std::string> values(strings);
            for (auto& item : values) {
                item = string();
            }
            return Value::strings(std::move(shape), std::move(values));
        }
        const auto offset = number();
        const auto size = number();
        if (size == 0) {
            return Value::borrow(dtype, std::move(shape), {}, nullptr);
        }
        const auto all = shared_ ? shared_->bytes() : Bytes{};
        if (size > all.size() || offset > all.size() - size) {
            fail_message();
        }
        return Value::borrow(dtype, std::move(shape), all.subspan(offset, size), shared_);
    }

    std::string_view text_;
    std::shared_ptr<const Mapping> shared_;
};

bool send_all(int socket, const char* data, std::size_t size) {
    while (size > 0) {
        const auto count = ::send(socket, data, size, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        data += count;
        size -= static_cast<std::size_t>(count);
    }
    return true;
}

bool receive_all(int socket, char* data, std::size_t size) {
    while (size > 0) {
        const auto count = ::recv(socket, data, size, 0);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        data += count;
        size -= static_cast<std::size_t>(count);
    }
    return true;
}

// The header goes with the descriptor of the shared memory, if there is one.
bool send_header(int socket, Header header, int descriptor) {
    iovec part{&header, sizeof header};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        auto* entry = CMSG_FIRSTHDR(&message);
        entry->cmsg_level = SOL_SOCKET;
        entry->cmsg_type = SCM_RIGHTS;
        entry->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(entry), &descriptor, sizeof descriptor);
    }
    ssize_t count = 0;
    do {
        count = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        return false;
    }
    const auto sent = static_cast<std::size_t>(count);
    return send_all(socket, reinterpret_cast<const char*>(&header) + sent, sizeof header - sent);
}

bool receive_header(int socket, Header& header, Descriptor& descriptor) {
    iovec part{&header, sizeof header};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t count = 0;
    do {
        count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        return false;
    }
    for (auto* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
         entry = CMSG_NXTHDR(&message, entry)) {
        if (entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SCM_RIGHTS) {
            int received = -1;
            std::memcpy(&received, CMSG_DATA(entry), sizeof received);
            descriptor = Descriptor(received);
        }
    }
    const auto got = static_cast<std::size_t>(count);
    return receive_all(socket, reinterpret_cast<char*>(&header) + got, sizeof header - got);
}

}  // namespace

bool send_message(int socket, const Message& message) {
    Writer writer;
    writer.string(message.text);
    writer.string(message.hint);
    writer.number(message.values.size());
    for (const auto& [name, value] : message.values) {
        writer.string(name);
        writer.value(value);
    }
    const auto shared = writer.shared();
    Header header;
    header.kind = static_cast<std::uint32_t>(message.kind);
    header.detail = message.detail;
    header.size = writer.text().size();
    header.shared_size = writer.shared_size();
    return send_header(socket, header, shared.get()) &&
           send_all(socket, writer.text().data(), writer.text().size());
}

bool receive_message(int socket, Message& message) {
    Header header;
    const auto magic = header.magic;
    Descriptor shared;
    if (!receive_header(socket, header, shared)) {
        return false;
    }
    if (header.magic != magic || header.size > largest_text ||
        header.kind > static_cast<std::uint32_t>(Message::Kind::log) ||
        shared.is_open() != (header.shared_size != 0)) {
        fail_message();
    }
    std::string text(header.size, '\0');
    if (!receive_all(socket, text.data(), text.size())) {
        return false;
    }
    auto mapping =
        shared.is_open() ? std::make_shared<const Mapping>(shared, header.shared_size) : nullptr;
    Reader reader(text, std::move(mapping));
    message.kind = static_cast<Message::Kind>(header.kind);
    message.detail = header.detail;
    message.text = reader.string();
    message.hint = reader.string();
    message.values.clear();
    const auto count = reader.count();
    for (std::size_t i = 0; i < count; ++i) {
        auto name = reader.string();
        message.values.push_back({std::move(name), reader.value()});
    }
    return true;
}

}  // namespace trocar
