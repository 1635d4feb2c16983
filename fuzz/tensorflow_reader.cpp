// Reads arbitrary bytes as a SavedModel or frozen graph, and as the table of a checkpoint. What can
// be read must verify.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "formats/tensorflow/reader.h"
#include "formats/tensorflow/table.h"
#include "trocar/error.h"

namespace {

using namespace trocar;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    try {
        const auto model = tensorflow::read_tensorflow(bytes, nullptr, "");
        require(model.graph.verify().empty());
        for (const auto& function : model.functions) {
            require(function->body.verify().empty());
        }
        for (const auto id : model.graph.tensors()) {
            const auto& constant = model.graph.tensor(id).constant;
            if (constant && !constant->is_string() && constant->element_count() < 1'000'000) {
                constant->bytes();
            }
        }
    } catch (const Error& e) {
        require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
    }
    try {
        tensorflow::read_table(bytes, "'table'");
    } catch (const Error& e) {
        require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
    }
    return 0;
}
