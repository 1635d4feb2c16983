#pragma once

#include <string>

namespace trocar::libtorch {

inline constexpr const char* build_hint =
    "build Trocar with -DTROCAR_TORCH=PATH, the folder of the Python package torch, or with "
    "libtorch-dev of the system";

// The library of torch that the bridge was compiled with; empty: this build has no bridge.
std::string torch_library();
std::string torch_version();
// The bridge, where it was built or installed; empty: it is not there.
std::string bridge_path();

}  // namespace trocar::libtorch
