#include "engines/reference/call.h"

namespace trocar::reference {

std::span<const Entry> vision_ops() {
    return {};
}

}  // namespace trocar::reference
