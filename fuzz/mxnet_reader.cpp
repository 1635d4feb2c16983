// Takes arbitrary bytes as a symbol and, after a zero byte, its arrays. What can be read must
// verify.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "formats/mxnet/params.h"
#include "formats/mxnet/reader.h"
#include "trocar/error.h"

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
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto end = std::min(text.find('\0'), text.size());
    const auto arrays = std::as_bytes(std::span(data, size)).subspan(std::min(end + 1, size));
    for (const bool alone : {false, true}) {
        try {
            if (alone) {
                mxnet::read_arrays(arrays, nullptr, "'arrays'");
            } else {
                check(mxnet::read_mxnet(text.substr(0, end), arrays, nullptr, "'s'", "'a'").graph);
            }
        } catch (const Error& e) {
            require(e.fault() == Fault::input || e.fault() == Fault::unsupported);
        }
    }
    return 0;
}
