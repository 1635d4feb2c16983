#pragma once

#include "trocar/command.h"

namespace trocar {

extern const Command ops_measure;
extern const Command ops_explain;
extern const Command ops_next;
extern const Command ops_predict;
extern const Command ops_evaluate;
extern const Command ops_list;
extern const Command ops_show;
extern const Command ops_export;
extern const Command ops_merge;
extern const Command ops_verify;

}  // namespace trocar
