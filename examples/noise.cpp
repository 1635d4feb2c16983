// Adds reproducible noise to what ops give: how much of it does the model bear?
//
//     trocar run model.onnx --fill random --tool ./noise.so,at=Conv,size=0.01
#include <trocar/random.h>
#include <trocar/tool_library.h>

class Noise : public trocar::Tool {
public:
    explicit Noise(const trocar::ToolSettings& settings)
        : size_(settings.number("size", 0.01)), seed_(settings.seed()) {
        after(settings.selector("at", trocar::op("Conv")), [this](trocar::Port& port) {
            if (port.output(0).dtype() == trocar::DType::f32) {
                shake(port);
            }
        });
    }

private:
    // What is drawn depends on the op, the run and the element alone, not on the order of calls.
    void shake(trocar::Port& port) const {
        const auto numbers = port.writable_output(0).as<float>();
        const auto key = seed_ + trocar::index(port.id());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const auto words = trocar::philox(key, port.run(), i);
            numbers[i] +=
                static_cast<float>(size_ * (2 * trocar::unit_double(words[0], words[1]) - 1));
        }
    }

    double size_;
    std::uint64_t seed_;
};

TROCAR_TOOL(Noise, "Adds uniform noise to what ops give")
