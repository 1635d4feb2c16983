// Reads arbitrary bytes as a TensorFlow Lite model. What can be read must verify, be written back
// as the same bytes, and, where it can be built anew, be read again.
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace trocar;
    static const RoundTrip format{
        [](Bytes bytes) { return tflite::matches(bytes, "model.tflite"); },
        [](Bytes bytes, std::shared_ptr<const void> owner) {
            return tflite::read_bytes(bytes, std::move(owner), {});
        },
        [](const Model& model) { return tflite::encode(model, {}).bytes; },
        [](const Model& model) { return tflite::rebuild(model); },
    };
    if (const auto models = rebuilt(format, data, size)) {
        require(models->second.graph.op_count() == models->first.graph.op_count());
    }
    return 0;
}
