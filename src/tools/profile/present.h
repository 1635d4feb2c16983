#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/profile/roofline.h"
#include "tools/profile/rows.h"
#include "trocar/report.h"

namespace trocar::profiles {

// What a report is made of.
struct Findings {
    const Model& model;
    const Profile& profile;
    std::optional<Peaks> peaks;
    std::string cuts;  // source view: the selector, as text
    double load = 0;   // processes that wanted to run when it began; < 0: unknown
    int threads = 1;
};

Section time_section(const Findings& findings);
Section machine_section(const Findings& findings);

// For people: the tree of modules; or, with `flat`, parts with the slowest first.
Table layer_table(const Findings& findings, const std::vector<Row>& rows, bool tree);
Table type_table(const Findings& findings);
// For programs: every part with all that is known of it; every sample.
Table part_table(const Findings& findings);
Table sample_table(const Findings& findings);

// What is odd about the numbers, a sentence each.
std::vector<std::string> doubts(const Findings& findings);

}  // namespace trocar::profiles
