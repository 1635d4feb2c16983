// Reads arbitrary bytes as an archive of torch.export; what does not begin like an archive is taken
// as a program, a list of weights and a file of elements, with zero bytes between, and put into
// one. What can be read must verify.
#include <cstdint>
#include <span>
#include <string>

#include "formats/pt2/reader.h"
#include "fuzz/require.h"
#include "util/test_zip.h"

using namespace trocar;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    if (!bytes.starts_with("PK")) {
        const auto first = std::min(bytes.find('\0'), bytes.size());
        const auto second = std::min(bytes.find('\0', first + 1), bytes.size());
        const auto weights =
            bytes.substr(std::min(first + 1, bytes.size()), second - std::min(first + 1, second));
        bytes =
            TestZip()
                .add("m/data/weights/weight_0", bytes.substr(std::min(second + 1, bytes.size())))
                .add("m/data/weights/model_weights_config.json", weights)
                .add("m/models/model.json", bytes.substr(0, first))
                .add("m/archive_format", "pt2")
                .bytes();
    }
    try {
        const auto model = pt2::read_pt2(std::as_bytes(std::span(bytes)), nullptr, "");
        require_valid(model.graph);
    } catch (const Error& e) {
        require_refusal(e);
    }
    return 0;
}
