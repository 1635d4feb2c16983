#include "trocar/version.h"

namespace trocar {

const char* version() {
    return TROCAR_VERSION;
}
const char* build_type() {
    return TROCAR_BUILD_NAME;
}

}  // namespace trocar
