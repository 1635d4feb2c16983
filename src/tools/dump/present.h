#pragma once

#include "trocar/dump.h"
#include "trocar/report.h"

namespace trocar::dump {

// A row per tensor. `sets`: there is more than one set of inputs.
Table record_table(bool sets);
Row record_row(const DumpRecord& record);

}  // namespace trocar::dump
