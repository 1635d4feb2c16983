#pragma once

#include <string>
#include <string_view>

namespace trocar::pt2 {

// An expression that torch writes as nested constructors of sympy's,
// "Mul(Integer(4), Symbol('s77', positive=True, integer=True))", as people write it: "4*s77".
// What is not of that form is left as it is.
std::string readable(std::string_view expression);

}  // namespace trocar::pt2
