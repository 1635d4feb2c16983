#include "util/display.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace trocar {

namespace {

constexpr char32_t replacement = 0xfffd;

struct CodeRange {
    char32_t first;
    char32_t last;
};

// Characters drawn onto the one before: the common ones, in order.
constexpr std::array zero_width{
    CodeRange{0x0300, 0x036f}, CodeRange{0x0483, 0x0489}, CodeRange{0x0591, 0x05bd},
    CodeRange{0x05bf, 0x05bf}, CodeRange{0x05c1, 0x05c2}, CodeRange{0x0610, 0x061a},
    CodeRange{0x064b, 0x065f}, CodeRange{0x0670, 0x0670}, CodeRange{0x06d6, 0x06dc},
    CodeRange{0x0900, 0x0902}, CodeRange{0x093a, 0x093a}, CodeRange{0x093c, 0x093c},
    CodeRange{0x0941, 0x0948}, CodeRange{0x094d, 0x094d}, CodeRange{0x0e31, 0x0e31},
    CodeRange{0x0e34, 0x0e3a}, CodeRange{0x0e47, 0x0e4e}, CodeRange{0x1ab0, 0x1aff},
    CodeRange{0x1dc0, 0x1dff}, CodeRange{0x200b, 0x200f}, CodeRange{0x202a, 0x202e},
    CodeRange{0x2060, 0x2069}, CodeRange{0x20d0, 0x20ff}, CodeRange{0xfe00, 0xfe0f},
    CodeRange{0xfe20, 0xfe2f}, CodeRange{0xfeff, 0xfeff}, CodeRange{0xe0001, 0xe01ef},
};

// East Asian wide and full-width characters, and emoji, in order.
constexpr std::array double_width{
    CodeRange{0x1100, 0x115f},   CodeRange{0x231a, 0x231b},   CodeRange{0x2329, 0x232a},
    CodeRange{0x23e9, 0x23ec},   CodeRange{0x23f0, 0x23f0},   CodeRange{0x23f3, 0x23f3},
    CodeRange{0x25fd, 0x25fe},   CodeRange{0x2614, 0x2615},   CodeRange{0x2648, 0x2653},
    CodeRange{0x267f, 0x267f},   CodeRange{0x2693, 0x2693},   CodeRange{0x26a1, 0x26a1},
    CodeRange{0x26aa, 0x26ab},   CodeRange{0x26bd, 0x26be},   CodeRange{0x26c4, 0x26c5},
    CodeRange{0x26ce, 0x26ce},   CodeRange{0x26d4, 0x26d4},   CodeRange{0x26ea, 0x26ea},
    CodeRange{0x26f2, 0x26f3},   CodeRange{0x26f5, 0x26f5},   CodeRange{0x26fa, 0x26fa},
    CodeRange{0x26fd, 0x26fd},   CodeRange{0x2705, 0x2705},   CodeRange{0x270a, 0x270b},
    CodeRange{0x2728, 0x2728},   CodeRange{0x274c, 0x274c},   CodeRange{0x274e, 0x274e},
    CodeRange{0x2753, 0x2755},   CodeRange{0x2757, 0x2757},   CodeRange{0x2795, 0x2797},
    CodeRange{0x27b0, 0x27b0},   CodeRange{0x27bf, 0x27bf},   CodeRange{0x2b1b, 0x2b1c},
    CodeRange{0x2b50, 0x2b50},   CodeRange{0x2b55, 0x2b55},   CodeRange{0x2e80, 0x303e},
    CodeRange{0x3041, 0x4dbf},   CodeRange{0x4e00, 0xa4cf},   CodeRange{0xa960, 0xa97f},
    CodeRange{0xac00, 0xd7a3},   CodeRange{0xf900, 0xfaff},   CodeRange{0xfe10, 0xfe19},
    CodeRange{0xfe30, 0xfe6f},   CodeRange{0xff01, 0xff60},   CodeRange{0xffe0, 0xffe6},
    CodeRange{0x16fe0, 0x18cff}, CodeRange{0x1b000, 0x1b2ff}, CodeRange{0x1f004, 0x1f004},
    CodeRange{0x1f0cf, 0x1f0cf}, CodeRange{0x1f18e, 0x1f18e}, CodeRange{0x1f191, 0x1f19a},
    CodeRange{0x1f200, 0x1f64f}, CodeRange{0x1f680, 0x1f6ff}, CodeRange{0x1f7e0, 0x1f7eb},
    CodeRange{0x1f900, 0x1f9ff}, CodeRange{0x1fa70, 0x1faff}, CodeRange{0x20000, 0x3fffd},
};

bool within(char32_t code, std::span<const CodeRange> ranges) {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                        [](char32_t c, const CodeRange& r) { return c < r.first; });
    return after != ranges.begin() && code <= std::prev(after)->last;
}

struct Character {
    char32_t code;
    std::size_t bytes;
    bool valid;
};

// The character at `at`, which is inside the text. Overlong forms, surrogates and numbers beyond
// Unicode are invalid and take one byte.
Character decode(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) {
        return {lead, 1, true};
    }
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - at < bytes) {
        return {replacement, 1, false};
    }
    char32_t code = lead & (0x7fu >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0u) != 0x80) {
            return {replacement, 1, false};
        }
        code = code << 6 | (byte(i) & 0x3fu);
    }
    constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return {replacement, 1, false};
    }
    return {code, bytes, true};
}

std::size_t width_of(char32_t code) {
    if (code < 0x300) {
        return 1;
    }
    return within(code, zero_width) ? 0 : within(code, double_width) ? 2 : 1;
}

// Moves the cursor, hides itself, or turns the direction of writing.
bool is_control(char32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200b || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x2069) || code == 0xfeff ||
           (code >= 0xe0000 && code <= 0xe007f);
}

bool is_plain_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string escape(char32_t code) {
    switch (code) {
        case '\n':
            return "\\n";
        case '\t':
            return "\\t";
        case '\r':
            return "\\r";
        default:
            return code < 0x100 ? fmt::format("\\x{:02x}", static_cast<unsigned>(code))
                                : fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    }
}

template <class Escape>
std::string rewritten(std::string_view text, Escape escaped) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const auto c = decode(text, at);
        if (!c.valid) {
            out += "\xef\xbf\xbd";
        } else if (escaped(c.code)) {
            out += escape(c.code);
        } else {
            out += text.substr(at, c.bytes);
        }
        at += c.bytes;
    }
    return out;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
    return rewritten(text, [](char32_t) { return false; });
}

std::string printable(std::string_view text) {
    if (is_plain_ascii(text)) {
        return std::string(text);
    }
    return rewritten(text, is_control);
}

std::size_t display_width(std::string_view text) {
    if (is_plain_ascii(text)) {
        return text.size();
    }
    std::size_t width = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto c = decode(text, at);
        width += width_of(c.code);
        at += c.bytes;
    }
    return width;
}

std::string ellipsis(std::string_view text, std::size_t width) {
    const auto full = display_width(text);
    if (full <= width) {
        return std::string(text);
    }
    if (width <= 1) {
        return "…";
    }
    const auto head = width / 2;  // with the ellipsis: the rest is the tail
    const auto tail = width - 1 - head;
    std::size_t left = 0;             // bytes kept at the beginning
    std::size_t right = text.size();  // where the end begins
    std::size_t columns = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto c = decode(text, at);
        const auto w = width_of(c.code);
        if (columns + w <= head) {
            left = at + c.bytes;
        }
        // The first place from which what follows fits the tail; not inside a combined character.
        if (full - columns <= tail && w > 0) {
            right = at;
            break;
        }
        columns += w;
        at += c.bytes;
    }
    return fmt::format("{}…{}", text.substr(0, left), text.substr(right));
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
    std::vector<std::string> lines(1);
    std::size_t used = 0;
    for (std::size_t at = 0; at <= text.size();) {
        const auto end = std::min(text.find(' ', at), text.size());
        const auto word = text.substr(at, end - at);
        const auto columns = display_width(word);
        if (width > 0 && !lines.back().empty() && used + 1 + columns > width) {
            lines.emplace_back();
            used = 0;
        } else if (!lines.back().empty()) {
            lines.back() += ' ';
            ++used;
        }
        lines.back() += word;
        used += columns;
        at = end + 1;
    }
    return lines;
}

std::string pad_left(std::string_view text, std::size_t width) {
    const auto columns = display_width(text);
    return std::string(columns < width ? width - columns : 0, ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
    const auto columns = display_width(text);
    return std::string(text).append(columns < width ? width - columns : 0, ' ');
}

}  // namespace trocar
