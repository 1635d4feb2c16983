#pragma once

#include <string>
#include <string_view>

namespace trocar::ov {

// What is informative in the engine's message, on one line: without source locations, conditions
// and inner names, ops named as "Add 'the_op'".
std::string trim_message(std::string_view message);

// Does the message say that the engine has no such op at all?
bool says_unknown_op(std::string_view message);

}  // namespace trocar::ov
