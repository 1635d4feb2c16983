// Prunes while the model runs: the weights of smallest size read as zero. The file stays as it is.
//
//     trocar run model.onnx --fill random --tool ./prune.so,at=Conv,share=0.5
#include <trocar/tool_library.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

class Prune : public trocar::Tool {
public:
    explicit Prune(const trocar::ToolSettings& settings) : share_(settings.number("share", 0.5)) {
        before(settings.selector("at", trocar::op("Conv") | trocar::op("Gemm")),
               [this](trocar::Port& port) { mask(port); })
            .with_constants();
    }

    void report(trocar::Report& report) const override {
        trocar::Section section{.key = "pruned", .title = "Pruned", .scalars = {}};
        section.scalars.push_back(
            {"layers", "Layers", std::uint64_t{limits_.size()}, trocar::Show::count, ""});
        section.scalars.push_back(
            {"weights", "Weights set to zero", pruned_, trocar::Show::count, ""});
        report.sections.push_back(std::move(section));
    }

private:
    void mask(trocar::Port& port) {
        if (port.input_count() < 2 || port.input(1).dtype() != trocar::DType::f32) {
            return;
        }
        const auto weights = port.writable_input(1).as<float>();
        const auto limit = limit_of(port, weights);
        std::uint64_t zeros = 0;
        for (auto& weight : weights) {
            if (std::abs(weight) < limit) {
                weight = 0;
                ++zeros;
            }
        }
        pruned_ += port.run() == 0 ? zeros : 0;
    }

    // Found once per layer.
    float limit_of(const trocar::Port& port, std::span<const float> weights) {
        const auto [at, fresh] = limits_.try_emplace(port.id(), 0.0F);
        if (fresh && !weights.empty()) {
            std::vector<float> sizes(weights.size());
            std::transform(weights.begin(), weights.end(), sizes.begin(),
                           [](float w) { return std::abs(w); });
            const auto place =
                std::min(sizes.size() - 1,
                         static_cast<std::size_t>(share_ * static_cast<double>(sizes.size())));
            std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(place),
                             sizes.end());
            at->second = sizes[place];
        }
        return at->second;
    }

    double share_;
    std::map<trocar::OpId, float> limits_;
    std::uint64_t pruned_ = 0;
};

TROCAR_TOOL(Prune, "Reads the smallest weights as zero")
