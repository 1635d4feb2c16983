#pragma once

#include <string>

#include "tools/profile/rows.h"

namespace trocar::profiles {

// What other programs open, as the text of a file.

// Chrome's trace format, for Perfetto: the modules, the parts in them, one run after the other (at
// most 50).
std::string chrome_trace(const Profile& profile, const std::string& title);
// "module;part microseconds", a line for each part: for flame graphs.
std::string folded_stacks(const Profile& profile);
std::string speedscope(const Profile& profile, const std::string& title);

// Time by layer as bars, in order.
std::string plot(const Profile& profile, const std::vector<Row>& rows, const std::string& title,
                 const std::string& subtitle);

}  // namespace trocar::profiles
