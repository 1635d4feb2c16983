#pragma once

#include "mapping/cursor.h"
#include "mapping/syntax.h"

namespace trocar::mapping {

// What a rule file says of the target dialect as a whole, behind the first word.
void parse_layout(Cursor& at, Layout& made);
void parse_fused(Cursor& at, Fused& made);
void parse_integers(Cursor& at, Integers& made);

}  // namespace trocar::mapping
