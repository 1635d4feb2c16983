// Reads arbitrary bytes as an archive of torch.jit; what does not begin like an archive is taken as
// code, a pickle and a storage, with zero bytes between, and put into one: the lengths stand in
// the first four bytes. What can be read must verify.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "formats/torchscript/reader.h"
#include "trocar/error.h"
#include "util/test_zip.h"

namespace {

using namespace trocar;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check(const Graph& graph) {
    require(graph.verify().empty());
    for (const auto id : graph.ops()) {
        for (const auto& body : graph.op(id).subgraphs()) {
            check(*body);
        }
    }
    for (const auto id : graph.tensors()) {
        const auto& constant = graph.tensor(id).constant;
        if (constant && !constant->is_string()) {
            try {
                constant->bytes();
            } catch (const Error& e) {
                require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    if (!bytes.starts_with("PK")) {
        const auto length = [&](std::size_t at) {
            return at + 1 < bytes.size() ? std::size_t{data[at]} << 8 | data[at + 1] : 0;
        };
        const auto take = [&](std::size_t from, std::size_t count) {
            return bytes.substr(std::min(from, bytes.size()), count);
        };
        const auto code = length(0);
        const auto pickle = length(2);
        bytes = TestZip()
                    .add("m/data.pkl", take(4 + code, pickle))
                    .add("m/code/__torch__.py", take(4, code))
                    .add("m/data/0", take(4 + code + pickle, bytes.size()))
                    .add("m/constants.pkl", "\x80\x02).")
                    .bytes();
    }
    try {
        const auto model =
            torchscript::read_torchscript(std::as_bytes(std::span(bytes)), nullptr, "");
        check(model.graph);
    } catch (const Error& e) {
        require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
    }
    return 0;
}
