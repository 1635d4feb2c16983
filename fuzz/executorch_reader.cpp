// Reads arbitrary bytes as an ExecuTorch program. What can be read must verify, be written back as
// the same bytes, and, where it can be built anew, be read again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "formats/executorch/reader.h"
#include "formats/executorch/writer.h"
#include "trocar/error.h"

namespace {

using namespace trocar;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void touch_constants(const Graph& graph) {
    for (const auto id : graph.tensors()) {
        const auto& constant = graph.tensor(id).constant;
        if (constant && byte_size(constant->dtype(), constant->element_count()) < (1U << 24)) {
            try {
                constant->bytes();
            } catch (const Error& e) {
                require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
            }
        }
    }
}

// Constants that are zeros without data may be larger than what a fuzzer should write.
bool is_small(const Graph& graph) {
    std::size_t sum = 0;
    for (const auto id : graph.tensors()) {
        const auto& constant = graph.tensor(id).constant;
        const auto size = constant ? byte_size(constant->dtype(), constant->element_count()) : 0;
        if (size > (1U << 24)) {
            return false;
        }
        sum += size;
    }
    return sum < (1U << 26);
}

void rebuild_and_read(const Model& model) {
    if (!is_small(model.graph)) {
        return;
    }
    std::shared_ptr<std::string> bytes;
    try {
        bytes = std::make_shared<std::string>(executorch::rebuild(model));
    } catch (const Error& e) {
        require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
        return;
    }
    const auto again = executorch::read_bytes(std::as_bytes(std::span(*bytes)), bytes, {});
    require(again.graph.op_count() >= model.graph.op_count());
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
    executorch::matches(bytes, "model.pte");
    Model model;
    try {
        model = executorch::read_bytes(bytes, words, {});
    } catch (const Error& e) {
        require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
        return 0;
    }
    require(model.graph.verify().empty());
    for (const auto& function : model.functions) {
        require(function->body.verify().empty());
    }
    const auto same = executorch::encode(model, {}).bytes;
    require(same.size() == size && std::memcmp(same.data(), data, size) == 0);
    touch_constants(model.graph);
    rebuild_and_read(model);
    return 0;
}
