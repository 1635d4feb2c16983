// Compares tensors of raw elements, for check.py to hold against numpy. Reads lines of
//   DTYPE SHAPE FILE FILE RTOL ATOL DETAIL TOP_K     with a shape as 2x3x4, or - for a scalar
// and prints for each the JSON of the difference, and what tolerances are needed.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "trocar/difference.h"
#include "trocar/error.h"

namespace {

using namespace trocar;

Shape parse_shape(const std::string& text) {
    Shape shape;
    std::istringstream stream(text == "-" ? "" : text);
    for (std::string part; std::getline(stream, part, 'x');) {
        shape.push_back(std::stoll(part));
    }
    return shape;
}

Value read(const std::string& dtype, const Shape& shape, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                  std::istreambuf_iterator<char>());
    return Value::copy(parse_dtype(dtype).value(), shape, std::as_bytes(std::span(bytes)));
}

void compare(const std::string& line) {
    std::istringstream words(line);
    std::string dtype;
    std::string shape;
    std::string left;
    std::string right;
    DifferenceOptions options;
    words >> dtype >> shape >> left >> right >> options.tolerance.rtol >> options.tolerance.atol >>
        options.detail >> options.top_k;
    const auto a = read(dtype, parse_shape(shape), left);
    const auto b = read(dtype, parse_shape(shape), right);
    const auto found = difference(a, b, options);
    const auto json = to_json(found);
    if (!(difference_from_json(json) == found)) {
        throw Error(Fault::internal, "the JSON does not say all");
    }
    const auto& tolerance = options.tolerance;
    fmt::print("{} {} {} {} {}\n", needed_factor(found.corners, tolerance),
               needed_atol(found.corners, tolerance.rtol),
               needed_rtol(found.corners, tolerance.atol), holds(found.corners, tolerance) ? 1 : 0,
               json);
}

}  // namespace

int main() {
    try {
        for (std::string line; std::getline(std::cin, line);) {
            compare(line);
        }
    } catch (const Error& e) {
        fmt::print(stderr, "{}\n  hint: {}\n", e.what(), e.hint());
        return 3;
    } catch (const std::exception& e) {
        fmt::print(stderr, "{}\n", e.what());
        return 70;
    }
}
