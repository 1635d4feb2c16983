#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "formats/numpy/npy.h"
#include "trocar/error.h"

namespace trocar::numpy {

namespace {

// numpy itself reads no header above 10,000 bytes unless told to.
constexpr std::size_t longest_header = 65536;
constexpr std::size_t most_dimensions = 64;

// The dictionary in the header, as far as arrays of numbers and texts need it.
class HeaderParser {
public:
    HeaderParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

    void parse() {
        expect('{');
        while (!accept('}')) {
            const auto key = quoted();
            expect(':');
            if (key == "descr" && !descr) {
                descr = description();
            } else if (key == "fortran_order" && !fortran_order) {
                fortran_order = truth();
            } else if (key == "shape" && !shape) {
                shape = dimensions();
            } else {
                fail(fmt::format("key '{}' is unknown or there twice", key));
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        skip_blanks();
        if (at_ != text_.size()) {
            fail("text after the dictionary");
        }
        if (!descr || !fortran_order || !shape) {
            fail("one of 'descr', 'fortran_order' and 'shape' is missing");
        }
    }

    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;

    [[noreturn]] void fail(std::string_view what) const {
        throw Error(Fault::input, fmt::format("{}: the .npy header is broken at character {}: {}",
                                              where_, at_, what));
    }

private:
    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
            ++at_;
        }
    }

    bool accept(char c) {
        skip_blanks();
        if (at_ < text_.size() && text_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }

    void expect(char c) {
        if (!accept(c)) {
            fail(fmt::format("'{}' expected", c));
        }
    }

    std::string quoted() {
        skip_blanks();
        if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
            fail("a quoted text expected");
        }
        const char quote = text_[at_++];
        const auto end = text_.find(quote, at_);
        if (end == std::string_view::npos) {
            fail("a quoted text does not end");
        }
        const auto content = text_.substr(at_, end - at_);
        at_ = end + 1;
        return std::string(content);
    }

    std::string description() {
        skip_blanks();
        if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(' || text_[at_] == '{')) {
            throw Error(Fault::unsupported,
                        fmt::format("{}: structured arrays are not read", where_),
                        "save each field as an array of its own");
        }
        return quoted();
    }

    bool truth() {
        skip_blanks();
        for (const bool value : {true, false}) {
            const std::string_view word = value ? "True" : "False";
            if (text_.substr(at_, word.size()) == word) {
                at_ += word.size();
                return value;
            }
        }
        fail("True or False expected");
    }

    Shape dimensions() {
        Shape dims;
        expect('(');
        while (!accept(')')) {
            skip_blanks();
            std::int64_t dim = 0;
            const auto* begin = text_.data() + at_;
            const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), dim);
            if (status != std::errc() || dim < 0) {
                fail("a dimension expected");
            }
            at_ += static_cast<std::size_t>(end - begin);
            accept('L');  // Python 2 wrote long integers as 3L
            dims.push_back(dim);
            if (dims.size() > most_dimensions) {
                fail(fmt::format("more than {} dimensions", most_dimensions));
            }
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        return dims;
    }

    std::string_view text_;
    std::string_view where_;
    std::size_t at_ = 0;
};

struct Element {
    char kind;
    std::size_t bytes;
    DType dtype;
};

constexpr Element elements[] = {
    {'b', 1, DType::boolean}, {'i', 1, DType::i8},    {'i', 2, DType::i16}, {'i', 4, DType::i32},
    {'i', 8, DType::i64},     {'u', 1, DType::u8},    {'u', 2, DType::u16}, {'u', 4, DType::u32},
    {'u', 8, DType::u64},     {'f', 2, DType::f16},   {'f', 4, DType::f32}, {'f', 8, DType::f64},
    {'c', 8, DType::c64},     {'c', 16, DType::c128},
};

[[noreturn]] void refuse(std::string_view descr, std::string_view where) {
    const char kind = descr.size() > 1 ? descr[1] : descr.front();
    if (kind == 'O' || descr.front() == 'O') {
        throw Error(Fault::unsupported, fmt::format("{}: pickled objects are not read", where),
                    "save the array with a numeric dtype: np.save(file, array.astype(np.float32))");
    }
    if (kind == 'V') {
        throw Error(
            Fault::unsupported,
            fmt::format("{}: elements of type '{}' do not say what their bytes mean", where, descr),
            "bfloat16, float8 and 4-bit arrays go into ONNX .pb files, or raw files with "
            "their type: FILE.bin:bf16:1x3");
    }
    throw Error(Fault::unsupported,
                fmt::format("{}: elements of type '{}' are not read", where, descr),
                "known are b1, i1 to i8, u1 to u8, f2, f4, f8, c8, c16, S and U");
}

// Fills kind, dtype, item_bytes and swap_bytes from numpy's text form of a dtype: "<f4".
void set_element(Header& header, std::string_view descr, std::string_view where) {
    const bool known_order =
        !descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos;
    if (descr.empty()) {
        throw Error(Fault::input, fmt::format("{}: the element type is empty", where));
    }
    if (!known_order || descr.size() < 3) {
        refuse(descr, where);
    }
    std::size_t size = 0;
    const auto* last = descr.data() + descr.size();
    const auto [end, status] = std::from_chars(descr.data() + 2, last, size);
    if (status != std::errc() || end != last) {
        refuse(descr, where);
    }
    const bool big_endian = descr.front() == '>';
    const char kind = descr[1];
    if (kind == 'S' || kind == 'U') {
        // A width of zero would let a tiny file stand for any number of strings.
        if (size == 0 || size > (std::size_t{1} << 32)) {
            throw Error(Fault::unsupported,
                        fmt::format("{}: texts of {} characters are not read", where, size));
        }
        header.kind = kind == 'S' ? Header::Kind::text : Header::Kind::unicode;
        header.dtype = DType::string;
        header.item_bytes = kind == 'S' ? size : 4 * size;
        header.swap_bytes = kind == 'U' && big_endian ? 4 : 0;
        return;
    }
    const auto* found =
        std::find_if(std::begin(elements), std::end(elements),
                     [&](const Element& e) { return e.kind == kind && e.bytes == size; });
    if (found == std::end(elements)) {
        refuse(descr, where);
    }
    header.dtype = found->dtype;
    header.item_bytes = size;
    const auto part = kind == 'c' ? size / 2 : size;
    header.swap_bytes = big_endian && part > 1 ? part : 0;
}

}  // namespace

Header parse_header(Bytes file, std::string_view where) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    const auto cut_short = [&] {
        return Error(Fault::input, fmt::format("{}: the .npy header ends early, after {} bytes",
                                               where, file.size()));
    };
    if (!text.starts_with(npy_magic)) {
        throw Error(Fault::input, fmt::format("{} is not an .npy array", where));
    }
    if (file.size() < 12) {
        throw cut_short();
    }
    const auto byte = [&](std::size_t at) { return std::to_integer<std::size_t>(file[at]); };
    const auto major = byte(6);
    if (major < 1 || major > 3 || byte(7) != 0) {
        throw Error(Fault::unsupported,
                    fmt::format("{}: .npy version {}.{} is not read", where, major, byte(7)),
                    "known are 1.0, 2.0 and 3.0");
    }
    const std::size_t start = major == 1 ? 10 : 12;
    const auto length = major == 1 ? byte(8) | byte(9) << 8
                                   : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
    if (length > longest_header) {
        throw Error(Fault::input,
                    fmt::format("{}: an .npy header of {} bytes is too long", where, length));
    }
    if (length > file.size() - start) {
        throw cut_short();
    }
    HeaderParser parser(text.substr(start, length), where);
    parser.parse();
    Header header;
    set_element(header, *parser.descr, where);
    header.fortran_order = *parser.fortran_order;
    header.shape = std::move(*parser.shape);
    header.data_at = start + length;
    return header;
}

}  // namespace trocar::numpy
