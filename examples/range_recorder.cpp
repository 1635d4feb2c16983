// Records the smallest and the largest number that each op gives, over all runs: what a quantizer
// wants to know.
//
//     trocar run model.onnx --fill random --repeat 10 --tool ./range_recorder.so,at=Conv
#include <trocar/tool_library.h>

#include <algorithm>
#include <map>

class RangeRecorder : public trocar::Tool {
public:
    explicit RangeRecorder(const trocar::ToolSettings& settings) {
        after(settings.selector("at", trocar::every_op()), [this](const trocar::Port& port) {
            const auto& output = port.output(0);
            if (output.is_tensor() && output.dtype() == trocar::DType::f32) {
                take(port, output.as<float>());
            }
        });
    }

    void report(trocar::Report& report) const override {
        trocar::Table table;
        table.key = "ranges";
        table.title = "Ranges";
        table.columns = {{.key = "op", .title = "Op"},
                         {.key = "least", .title = "Least"},
                         {.key = "greatest", .title = "Greatest"}};
        for (const auto& [op, range] : ranges_) {
            table.rows.push_back({.cells = {op, range.least, range.greatest}});
        }
        report.tables.push_back(std::move(table));
    }

private:
    struct Range {
        double least = 0;
        double greatest = 0;
    };

    void take(const trocar::Port& port, std::span<const float> numbers) {
        if (numbers.empty()) {
            return;
        }
        const auto [least, greatest] = std::minmax_element(numbers.begin(), numbers.end());
        const auto [at, fresh] = ranges_.try_emplace(port.describe(), Range{*least, *greatest});
        at->second.least = std::min<double>(at->second.least, *least);
        at->second.greatest = std::max<double>(at->second.greatest, *greatest);
    }

    std::map<std::string, Range> ranges_;
};

TROCAR_TOOL(RangeRecorder, "Records the range of what each op gives")
