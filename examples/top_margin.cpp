// For campaigns of faults: scales inputs, makes classes of scores, and measures how far the first
// choice is ahead of the second.
//
//     trocar inject model.onnx --fill random --tool ./top_margin.so,scale=0.5
//
// Settings: scale=NUMBER, by which inputs are multiplied (1); softmax=1, to take decisions from
// probabilities, as an application would.
#include <trocar/evaluation.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

class TopMargin : public trocar::Evaluation {
public:
    explicit TopMargin(const trocar::ToolSettings& settings) {
        const auto scale = static_cast<float>(settings.number("scale", 1));
        if (scale != 1) {
            preprocess([scale](const trocar::CampaignInput& input) {
                return changed(input.values, [scale](std::span<float> numbers) {
                    for (auto& number : numbers) {
                        number *= scale;
                    }
                });
            });
        }
        if (settings.integer("softmax", 0) != 0) {
            postprocess([](const auto& outputs, const trocar::CampaignInput&) {
                return changed(outputs, softmax);
            });
        }
        metric([](const auto&, const auto& faulty, const trocar::CampaignInput&) {
            return trocar::Metrics{{"margin", margin(faulty)}};
        });
    }

private:
    // The same tensors, those of f32 changed. What is given stays as it is: others read it, too.
    template <class F>
    static std::vector<trocar::NamedValue> changed(std::vector<trocar::NamedValue> values,
                                                   F change) {
        for (auto& [name, value] : values) {
            if (value.is_tensor() && value.dtype() == trocar::DType::f32) {
                value = trocar::Value::copy(value.dtype(), value.shape(), value.bytes());
                const auto bytes = value.mutable_bytes();
                change(std::span(reinterpret_cast<float*>(bytes.data()),
                                 bytes.size() / sizeof(float)));
            }
        }
        return values;
    }

    static void softmax(std::span<float> scores) {
        if (scores.empty()) {
            return;
        }
        const auto most = *std::max_element(scores.begin(), scores.end());
        float sum = 0;
        for (auto& score : scores) {
            score = std::exp(score - most);
            sum += score;
        }
        for (auto& score : scores) {
            score /= sum;
        }
    }

    // Of the first output; NaN, which is no number, where there are not two.
    static double margin(const std::vector<trocar::NamedValue>& outputs) {
        const auto& value = outputs.front().value;
        if (!value.is_tensor() || value.dtype() != trocar::DType::f32 ||
            value.element_count() < 2) {
            return std::numeric_limits<double>::quiet_NaN();
        }
        const auto numbers = value.as<float>();
        std::vector<float> scores(numbers.begin(), numbers.end());
        std::partial_sort(scores.begin(), scores.begin() + 2, scores.end(), std::greater<>());
        return scores[0] - scores[1];
    }
};

TROCAR_TOOL(TopMargin,
            "Scales inputs, makes probabilities of scores, measures the first choice's lead")
