#pragma once

#include <string>
#include <string_view>

namespace trocar {

// The instructions of this CPU by which engines choose their kernels: "avx2 avx512f fma". Two
// machines with the same ones run the same kernels of the same version of an engine.
std::string kernel_set();
// The same from the text of /proc/cpuinfo.
std::string kernel_set(std::string_view cpuinfo);

}  // namespace trocar
