// Takes arbitrary bytes as a symbol and, after a zero byte, its arrays. What can be read must
// verify.
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/mxnet/params.h"
#include "formats/mxnet/reader.h"
#include "fuzz/require.h"

using namespace trocar;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto end = std::min(text.find('\0'), text.size());
    const auto arrays = std::as_bytes(std::span(data, size)).subspan(std::min(end + 1, size));
    for (const bool alone : {false, true}) {
        try {
            if (alone) {
                mxnet::read_arrays(arrays, nullptr, "'arrays'");
            } else {
                require_valid(
                    mxnet::read_mxnet(text.substr(0, end), arrays, nullptr, "'s'", "'a'").graph);
            }
        } catch (const Error& e) {
            require_refusal(e);
        }
    }
    return 0;
}
