#pragma once

#include "util/wire.h"

namespace trocar::onnx {

using wire::depth_limit;
using wire::fail_in;
using wire::Fields;
using wire::File;
using wire::Wire;

}  // namespace trocar::onnx
