#pragma once

#pragma GCC visibility push(default)
namespace trocar {

const char* version();     // "0.1.0"
const char* build_type();  // "release", "dev", "asan"…

}  // namespace trocar
#pragma GCC visibility pop
