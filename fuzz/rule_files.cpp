// Rule files: whatever they hold, they are read or refused with a sentence.
#include <string_view>

#include "mapping/syntax.h"
#include "trocar/error.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    try {
        trocar::mapping::parse_rules({reinterpret_cast<const char*>(data), size}, "fuzz.map");
    } catch (const trocar::Error& error) {
        if (error.fault() != trocar::Fault::input) {
            throw;
        }
    }
    return 0;
}
