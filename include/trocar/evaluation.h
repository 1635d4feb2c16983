#pragma once

#include <utility>

#include "trocar/inject.h"
#include "trocar/tool_library.h"

// Tool libraries for campaigns of faults: they prepare inputs, make of outputs what decisions are
// taken from, and measure. One file is enough:
//
//     #include <trocar/evaluation.h>
//     struct Margin : trocar::Evaluation {
//         explicit Margin(const trocar::ToolSettings& settings) {
//             metric([](const auto& golden, const auto& faulty, const trocar::CampaignInput&) {
//                 return trocar::Metrics{{"margin", …}};
//             });
//         }
//     };
//     TROCAR_TOOL(Margin, "How far the first choice is ahead")
//
// compiled as any tool library is, and given to `trocar inject --tool`.
#pragma GCC visibility push(default)
namespace trocar {

// Says in its constructor what it does. There is one object for inputs, and one for each worker:
// each is called from one thread at a time. What the functions give must depend on nothing but
// their arguments and the settings. What they throw ends the campaign.
class Evaluation : public Tool {
public:
    Evaluation() = default;
    Evaluation(const Evaluation&) = delete;
    Evaluation& operator=(const Evaluation&) = delete;
    ~Evaluation() override;

    void preprocess(PrepareInput make) { preprocess_ = std::move(make); }
    void postprocess(Postprocess make) { postprocess_ = std::move(make); }
    void metric(Metric measure) { metric_ = std::move(measure); }

    const PrepareInput& preprocess() const { return preprocess_; }
    const Postprocess& postprocess() const { return postprocess_; }
    const Metric& metric() const { return metric_; }

private:
    PrepareInput preprocess_;
    Postprocess postprocess_;
    Metric metric_;
};

}  // namespace trocar
#pragma GCC visibility pop
