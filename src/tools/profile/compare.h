#pragma once

#include <filesystem>

#include "tools/profile/rows.h"
#include "trocar/report.h"

namespace trocar::profiles {

// This profile beside an earlier one, which was written as JSON: for the whole run and each part
// that both have, whether times differ by more than chance. Throws Error(input) when the file is no
// profile, Error(usage) when it is of another view.
Table compare(const Profile& profile, const std::filesystem::path& earlier);

// The samples of a part as the JSON report holds them, and the columns by which `compare` finds
// them.
std::vector<std::string> sample_texts(const std::vector<double>& by_run, std::size_t steady);
const char* view_name(View view);

}  // namespace trocar::profiles
