#include "formats/onnx/matches.h"

#include <algorithm>

#include "formats/onnx/schema.h"

namespace trocar::onnx {

using namespace schema;

namespace {

// A walk through fields that ends quietly where the bytes end or make no sense.
class Glance {
public:
    explicit Glance(Bytes bytes) : rest_(bytes) {}

    bool next() {
        std::uint64_t tag = 0;
        if (rest_.empty() || !varint(tag)) {
            return false;
        }
        number = tag >> 3;
        wire = static_cast<unsigned>(tag & 7);
        sane = sane && number > 0 && number < (1U << 29);
        switch (wire) {
            case 0:
                return varint(value);
            case 1:
                return skip(8);
            case 2:
                return varint(value) && skip(value);
            case 5:
                return skip(4);
            default:
                sane = false;
                return false;
        }
    }

    std::uint64_t number = 0;
    unsigned wire = 0;
    std::uint64_t value = 0;
    Bytes inside;  // as much of the payload as is there
    bool sane = true;

private:
    bool varint(std::uint64_t& result) {
        result = 0;
        for (unsigned i = 0; i < 10; ++i) {
            if (rest_.empty()) {
                return false;
            }
            const auto byte = static_cast<std::uint64_t>(rest_.front());
            rest_ = rest_.subspan(1);
            result |= (byte & 0x7f) << (7 * i);
            if (byte < 0x80) {
                return true;
            }
        }
        sane = false;
        return false;
    }
    bool skip(std::uint64_t count) {
        inside = rest_.first(std::min<std::uint64_t>(count, rest_.size()));
        rest_ = rest_.subspan(inside.size());
        return true;
    }
    Bytes rest_;
};

bool is_text(Bytes head) {
    return std::none_of(head.begin(), head.end(), [](std::byte b) {
        const auto c = static_cast<unsigned char>(b);
        return c < 0x20 && c != '\n' && c != '\r' && c != '\t';
    });
}

bool looks_like_opset(Bytes bytes) {
    Glance at(bytes);
    bool known = true;
    while (at.next()) {
        known = known && ((at.number == opset::domain && at.wire == 2) ||
                          (at.number == opset::version && at.wire == 0));
    }
    return known && at.sane;
}

bool looks_like_graph(Bytes bytes) {
    Glance at(bytes);
    bool known = true;
    while (at.next()) {
        known = known && (at.number > graph::metadata || at.wire == 2);
    }
    return known && at.sane;
}

}  // namespace

bool matches(Bytes head, const std::filesystem::path& path) {
    if (head.empty()) {
        return path.extension() == ".onnx";
    }
    if (is_text(head)) {
        return false;
    }
    bool told = false;
    Glance at(head);
    while (at.next()) {
        const bool numeric = at.number == model::ir_version || at.number == model::version;
        const bool known = at.number <= model::opset || at.number == model::metadata ||
                           (at.number >= model::training && at.number <= model::configuration);
        if (known && at.wire != (numeric ? 0U : 2U)) {
            return false;
        }
        // A text that begins with a line end is a message: this is a SavedModel of TensorFlow.
        if (at.number == model::producer && !at.inside.empty() &&
            at.inside.front() == std::byte{'\n'}) {
            return false;
        }
        if (at.number == model::ir_version) {
            told = told || (at.value >= 1 && at.value <= 1000);
        } else if (at.number == model::graph) {
            told = told || looks_like_graph(at.inside);
        } else if (at.number == model::opset) {
            told = told || looks_like_opset(at.inside);
        }
    }
    return told && at.sane;
}

}  // namespace trocar::onnx
