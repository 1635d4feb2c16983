#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "trocar/format.h"
#include "trocar/value.h"

// An .npy file: the six bytes "\x93NUMPY", a version (1.0, 2.0, 3.0), the length of the header (two
// bytes, little-endian, in version 1; four later), the header (a Python dictionary with the keys
// 'descr', 'fortran_order' and 'shape', padded with blanks up to a newline), and the elements
// without padding.

namespace trocar::numpy {

constexpr std::string_view npy_magic = "\x93NUMPY";

// What the header says.
struct Header {
    // How an element is stored; `text` and `unicode` become strings.
    enum class Kind { number, text, unicode };
    Kind kind = Kind::number;
    DType dtype = DType::undefined;
    std::size_t item_bytes = 0;  // one element
    std::size_t swap_bytes = 0;  // big-endian: size of the parts to reverse; 0: as it is
    bool fortran_order = false;
    Shape shape;
    std::size_t data_at = 0;  // first byte after the header
};

// Reads the header at the start of `file`. `where` names the file in messages. Throws Error(input)
// on a broken header, Error(unsupported) on element types that are not read.
Header parse_header(Bytes file, std::string_view where);

// The array that `file` holds, all of it. With an `owner` that keeps the bytes alive, elements that
// are stored as they are needed are not copied.
Value read_array(Bytes file, std::shared_ptr<const void> owner, std::string_view where);

// Can .npy hold the value, and numpy read it? Dense host tensors of numpy's own types.
bool holds(const Value& value);

// Version 1.0, elements at a multiple of 64 bytes. Throws Error(unsupported) unless `holds(value)`.
void write_array(const Value& value, const std::filesystem::path& path, Sync sync);

// What stands before the elements in an .npy file that begins at byte `at`: padded so that they
// begin at a multiple of 64 bytes. `where` names the file in messages.
std::string array_header(const Value& value, std::uint64_t at, std::string_view where);

}  // namespace trocar::numpy
