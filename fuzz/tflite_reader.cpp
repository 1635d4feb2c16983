// Reads arbitrary bytes as a TensorFlow Lite model. What can be read must verify, be written back
// as the same bytes, and survive being rebuilt and read again.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "fuzz/require.h"

namespace {

using namespace trocar;

// Elements that cannot be decoded are found when they are needed.
void rebuild_and_read(const Model& model) {
    std::shared_ptr<std::string> bytes;
    try {
        bytes = std::make_shared<std::string>(tflite::rebuild(model));
    } catch (const Error& e) {
        require_refusal(e);
        return;
    }
    const auto again = tflite::read_bytes(std::as_bytes(std::span(*bytes)), bytes, {});
    require(again.graph.op_count() == model.graph.op_count());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // As aligned as a mapped file.
    auto words = std::make_shared<std::vector<std::uint64_t>>(size / 8 + 2);
    auto* start = reinterpret_cast<std::byte*>(words->data());
    start += (16 - reinterpret_cast<std::uintptr_t>(start) % 16) % 16;
    if (size > 0) {
        std::memcpy(start, data, size);
    }
    const Bytes bytes(start, size);
    tflite::matches(bytes, "model.tflite");
    Model model;
    try {
        model = tflite::read_bytes(bytes, words, {});
    } catch (const Error& e) {
        require_refusal(e);
        return 0;
    }
    require_valid(model.graph);
    for (const auto& function : model.functions) {
        require_valid(function->body);
    }
    const auto same = tflite::encode(model, {}).bytes;
    require(same.size() == size && std::memcmp(same.data(), data, size) == 0);
    rebuild_and_read(model);
    return 0;
}
