#include "engines/torch/find.h"

#include "util/bridge.h"

namespace trocar::libtorch {

std::string torch_library() {
    return TROCAR_TORCH_LIBRARY;
}

std::string torch_version() {
    return TROCAR_TORCH_VERSION;
}

std::string bridge_path() {
    return find_bridge("trocar_torch.so");
}

}  // namespace trocar::libtorch
