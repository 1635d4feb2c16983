// Reads arbitrary bytes as an ExecuTorch program. What can be read must verify, be written back as
// the same bytes, and, where it can be built anew, be read again.
#include "formats/executorch/reader.h"
#include "formats/executorch/writer.h"
#include "fuzz/round_trip.h"

namespace {

// Constants that are zeros without data may be larger than what a fuzzer should write.
bool is_small(const trocar::Graph& graph) {
    std::size_t sum = 0;
    for (const auto id : graph.tensors()) {
        const auto& constant = graph.tensor(id).constant;
        const auto size =
            constant ? trocar::byte_size(constant->dtype(), constant->element_count()) : 0;
        if (size > (1U << 24)) {
            return false;
        }
        sum += size;
    }
    return sum < (1U << 26);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace trocar;
    static const RoundTrip format{
        [](Bytes bytes) { return executorch::matches(bytes, "model.pte"); },
        [](Bytes bytes, std::shared_ptr<const void> owner) {
            return executorch::read_bytes(bytes, std::move(owner), {});
        },
        [](const Model& model) { return executorch::encode(model, {}).bytes; },
        [](const Model& model) {
            return is_small(model.graph) ? std::optional(executorch::rebuild(model)) : std::nullopt;
        },
    };
    if (const auto models = rebuilt(format, data, size)) {
        require(models->second.graph.op_count() >= models->first.graph.op_count());
    }
    return 0;
}
