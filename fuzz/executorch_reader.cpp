// Reads arbitrary bytes as an ExecuTorch program. What can be read must verify, be written back as
// the same bytes, and, where it can be built anew, be read again.
#include "formats/executorch/reader.h"
#include "formats/executorch/writer.h"
#include "fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace trocar;
    static const RoundTrip format{
        [](Bytes bytes) { return executorch::matches(bytes, "model.pte"); },
        [](Bytes bytes, std::shared_ptr<const void> owner) {
            return executorch::read_bytes(bytes, std::move(owner), {});
        },
        [](const Model& model) { return executorch::encode(model, {}).bytes; },
        [](const Model& model) { return executorch::rebuild(model); },
    };
    if (const auto models = rebuilt(format, data, size)) {
        require(models->second.graph.op_count() >= models->first.graph.op_count());
    }
    return 0;
}
