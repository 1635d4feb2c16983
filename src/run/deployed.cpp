#include "trocar/deployed.h"

#include "trocar/error.h"
namespace trocar {
Deployed deploy(const Model&, Engine&) {
    throw Error(Fault::unsupported, "not yet");
}
Value to_plain(const Value& value, const Layout&) {
    return value;
}
void to_blocked(const Value&, const Layout&, std::span<std::byte>) {}
}  // namespace trocar
