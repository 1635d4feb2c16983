#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/generate.h"
#include "trocar/value.h"

namespace trocar {

// "NAME=REST" taken apart. Names may hold '=' themselves: the longest one of `known` wins, else all
// before the first '='. No name: there is no '=', or the whole text is a file that exists.
struct Assignment {
    std::string name;
    std::string rest;
};
Assignment parse_assignment(std::string_view text, std::span<const std::string> known);

// "1,3,224,224" or "1x3x224x224"; "scalar" for rank 0. Nothing when it is no shape.
std::optional<Shape> parse_shape(std::string_view text);

// One source of values, read as far as that needs no model.
struct InputSource {
    std::string name;    // of the input it is for; may be empty
    std::string origin;  // for messages: the text without the name
    std::optional<Fill> fill;

    // Raw elements.
    std::string raw_path;  // empty: not raw
    std::optional<DType> raw_dtype;
    std::optional<Shape> raw_shape;

    std::vector<NamedValue> values;  // from a file or a folder of files
    bool by_position = false;        // the values are for the model's inputs in order
};

// Throws Error(usage) on a text that cannot be understood, Error(input) on files that cannot be
// read.
InputSource read_source(std::string_view text, std::span<const std::string> input_names);

// A file of raw little-endian elements, not copied. Throws Error(input) unless it has just the
// bytes that the shape takes.
Value read_raw(const std::string& path, DType dtype, const Shape& shape);

}  // namespace trocar
