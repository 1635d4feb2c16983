#pragma once

#include "trocar/graph.h"

namespace trocar {

// Does an op of two inputs give the same bits when they are exchanged? Judged by its type, which
// the vocabularies of ONNX, TensorFlow and TensorFlow Lite write in different ways.
bool commutes(const Op& op);

// Does an attribute of an ONNX op say what holds without it too? Only of attributes that have had
// one default in all versions.
bool says_default(const Op& op, const Attribute& attribute);

}  // namespace trocar
