// Stops at the first op that gives NaN or infinity, and says which one it was.
//
//     trocar run model.onnx --fill random --tool ./nan_finder.so
#include <trocar/tool_library.h>

#include <cmath>

class NanFinder : public trocar::Tool {
public:
    explicit NanFinder(const trocar::ToolSettings& /*settings*/) {
        // `stop` changes the run, so this is a `Port&`.
        after(trocar::every_op(), [this](trocar::Port& port) {
            for (std::size_t i = 0; i < port.output_count(); ++i) {
                if (is_bad(port.output(i))) {
                    found_ = port.describe();
                    port.stop();
                }
            }
        });
    }

    void report(trocar::Report& report) const override {
        trocar::Section section{.key = "nan_finder", .title = "NaN finder", .scalars = {}};
        section.scalars.push_back(
            {"first", "First bad op", found_.empty() ? "none" : found_, trocar::Show::plain, ""});
        report.sections.push_back(std::move(section));
        report.verdict = report.verdict && found_.empty();
    }

private:
    static bool is_bad(const trocar::Value& value) {
        if (!value.is_tensor() || value.dtype() != trocar::DType::f32) {
            return false;
        }
        for (const float number : value.as<float>()) {
            if (!std::isfinite(number)) {
                return true;
            }
        }
        return false;
    }

    std::string found_;
};

TROCAR_TOOL(NanFinder, "Stops at the first op that gives NaN or infinity")
