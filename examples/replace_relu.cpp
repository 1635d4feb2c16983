// Our code instead of an op: a ReLU with an upper limit. The same way serves an op that the engine
// does not know at all.
//
//     trocar run model.onnx --fill random --tool ./replace_relu.so,limit=6
#include <trocar/tool_library.h>

#include <algorithm>

class ReplaceRelu : public trocar::Tool {
public:
    explicit ReplaceRelu(const trocar::ToolSettings& settings)
        : limit_(static_cast<float>(settings.number("limit", 6))) {
        replace(settings.selector("at", trocar::op("Relu")), [this](trocar::Port& port) {
            const auto& in = port.input(0);
            const auto from = in.as<float>();
            const auto to = port.make_output(0, in.dtype(), in.shape()).as<float>();
            std::transform(from.begin(), from.end(), to.begin(),
                           [this](float x) { return std::clamp(x, 0.0F, limit_); });
        });
    }

private:
    float limit_;
};

TROCAR_TOOL(ReplaceRelu, "ReLU with an upper limit in place of ReLU")
