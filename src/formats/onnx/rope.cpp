#include "formats/onnx/rope.h"

#include <bit>

namespace trocar::onnx {

void Rope::borrow(Bytes bytes) {
    if (bytes.empty()) {
        return;
    }
    size_ += bytes.size();
    if (!pieces_.empty() && pieces_.back().owned.empty()) {
        auto& last = pieces_.back().borrowed;
        if (last.data() + last.size() == bytes.data()) {
            last = {last.data(), last.size() + bytes.size()};
            return;
        }
    }
    pieces_.push_back({bytes, {}});
}

void Rope::own(std::string_view text) {
    if (text.empty()) {
        return;
    }
    size_ += text.size();
    if (pieces_.empty() || pieces_.back().owned.empty()) {
        pieces_.emplace_back();
    }
    pieces_.back().owned += text;
}

void Rope::append(Rope&& other) {
    for (auto& piece : other.pieces_) {
        if (piece.owned.empty()) {
            borrow(piece.borrowed);
        } else if (pieces_.empty() || pieces_.back().owned.empty()) {
            size_ += piece.owned.size();
            pieces_.push_back(std::move(piece));
        } else {
            own(piece.owned);
        }
    }
    other = {};
}

void Rope::varint(std::uint64_t value) {
    char text[10];
    std::size_t length = 0;
    while (value >= 0x80) {
        text[length++] = static_cast<char>(value | 0x80);
        value >>= 7;
    }
    text[length++] = static_cast<char>(value);
    own({text, length});
}

void Rope::tag(std::uint32_t number, Wire wire) {
    varint(std::uint64_t{number} << 3 | static_cast<std::uint64_t>(wire));
}

void Rope::integer(std::uint32_t number, std::int64_t value) {
    tag(number, Wire::varint);
    varint(static_cast<std::uint64_t>(value));
}

void Rope::real(std::uint32_t number, float value) {
    tag(number, Wire::fixed32);
    own({reinterpret_cast<const char*>(&value), sizeof value});
}

void Rope::text(std::uint32_t number, std::string_view value) {
    tag(number, Wire::length);
    varint(value.size());
    own(value);
}

void Rope::bytes(std::uint32_t number, Bytes value) {
    tag(number, Wire::length);
    varint(value.size());
    borrow(value);
}

void Rope::message(std::uint32_t number, Rope&& value) {
    tag(number, Wire::length);
    varint(value.size());
    append(std::move(value));
}

bool Rope::is(Bytes bytes) const {
    if (bytes.empty()) {
        return size_ == 0;
    }
    return pieces_.size() == 1 && pieces_[0].owned.empty() &&
           pieces_[0].borrowed.data() == bytes.data() && pieces_[0].borrowed.size() == bytes.size();
}

std::string Rope::str() const {
    std::string all;
    all.reserve(size_);
    for_each([&](Bytes piece) {
        all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    return all;
}

Rewrite::List* Rewrite::find(std::uint32_t number) {
    for (auto& list : lists_) {
        if (list.number == number) {
            return &list;
        }
    }
    return nullptr;
}

void Rewrite::list(std::uint32_t number, std::size_t count, Put put) {
    lists_.push_back({.number = number, .count = count, .put = std::move(put), .same = {}});
}

void Rewrite::text(std::uint32_t number, std::string_view value) {
    list(number, value.empty() ? 0 : 1,
         [=, text = std::string(value)](Rope& out, std::size_t, const Fields*) {
             out.text(number, text);
         });
    lists_.back().same = [text = std::string(value)](const Fields& slot) {
        return slot.wire() == Wire::length && slot.text() == text;
    };
}

void Rewrite::integer(std::uint32_t number, std::int64_t value) {
    list(number, value == 0 ? 0 : 1,
         [=](Rope& out, std::size_t, const Fields*) { out.integer(number, value); });
    lists_.back().same = [=](const Fields& slot) {
        return slot.wire() == Wire::varint && slot.integer() == value;
    };
}

void Rewrite::texts(std::uint32_t number, std::vector<std::string> values) {
    const auto count = values.size();
    list(number, count,
         [number, all = std::move(values)](Rope& out, std::size_t k, const Fields* slot) {
             if (slot != nullptr && slot->wire() == Wire::length && slot->text() == all[k]) {
                 out.borrow(slot->whole());
             } else {
                 out.text(number, all[k]);
             }
         });
}

Rope Rewrite::finish() {
    // The base was read before, so this walk cannot fail; the file has no name to give.
    const File file{"", base_, nullptr, {}, false};
    for (Fields at(file, base_); at.next();) {
        if (auto* list = find(at.number())) {
            ++list->slots;
            list->keep = list->same && list->same(at);
        }
    }
    Rope out;
    const auto put = [&](List& list, const Fields* slot) {
        list.put(out, list.done, slot);
        ++list.done;
    };
    for (Fields at(file, base_); at.next();) {
        auto* list = find(at.number());
        if (list == nullptr || list->keep) {
            out.borrow(at.whole());
            continue;
        }
        if (list->done < list->count) {
            put(*list, &at);
        }
        const bool last = ++list->seen == list->slots;
        while (last && list->done < list->count) {
            put(*list, nullptr);
        }
    }
    for (auto& list : lists_) {
        while (!list.keep && list.done < list.count) {
            put(list, nullptr);
        }
    }
    return out;
}

}  // namespace trocar::onnx
