// Reads arbitrary bytes as an ONNX model and as an ONNX value. What can be read must verify, be
// written back as the same bytes, and survive being encoded and read again.
#include <cstdint>
#include <span>

#include "formats/onnx/matches.h"
#include "formats/onnx/reader.h"
#include "formats/onnx/values.h"
#include "formats/onnx/writer.h"
#include "fuzz/require.h"

namespace {

using namespace trocar;

void read_model(Bytes bytes) {
    Model model;
    try {
        model = onnx::read_onnx(bytes, nullptr, "");
    } catch (const Error& e) {
        require(e.fault() == Fault::input);
        return;
    }
    require_valid(model.graph);
    for (const auto& function : model.functions) {
        require_valid(function->body);
    }
    require(onnx::write_model(model, onnx::keep_places()).is(bytes));
    // An edit that changes nothing in the end.
    for (const auto id : model.graph.tensors()) {
        const auto name = model.graph.tensor(id).name;
        const auto other = model.graph.fresh_name("renamed");
        try {
            model.graph.rename(id, other);
        } catch (const Error&) {
            continue;  // a subgraph has a tensor of that name
        }
        model.graph.rename(id, name);
        break;
    }
    try {
        const auto encoded = onnx::encode(model, {});
        onnx::read_onnx(std::as_bytes(std::span(encoded.bytes)), nullptr, "");
    } catch (const Error& e) {
        // Elements that cannot be decoded are found when they are needed.
        require(e.fault() == Fault::input);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    onnx::matches(bytes, "model.onnx");
    read_model(bytes);
    try {
        const auto values = onnx::read_values(bytes, nullptr, "value.pb");
        if (onnx::holds(values.front().value)) {
            onnx::encode_value(values.front());
        }
    } catch (const Error& e) {
        require_refusal(e);
    }
    return 0;
}
