// Counts how often ops of each type run, those in the bodies of loops included.
//
//     trocar run model.onnx --fill random --tool ./op_counter.so
#include <trocar/tool_library.h>

#include <map>

class OpCounter : public trocar::Tool {
public:
    explicit OpCounter(const trocar::ToolSettings& settings) {
        after(settings.selector("at", trocar::every_op()),
              [this](const trocar::Port& port) { ++calls_[port.op().type]; });
    }

    void report(trocar::Report& report) const override {
        trocar::Table table;
        table.key = "calls";
        table.title = "Ops that ran";
        table.columns = {{.key = "type", .title = "Type"},
                         {.key = "calls", .title = "Calls", .show = trocar::Show::count}};
        for (const auto& [type, calls] : calls_) {
            table.rows.push_back({.cells = {type, calls}});
        }
        report.tables.push_back(std::move(table));
    }

private:
    std::map<std::string, std::uint64_t> calls_;
};

TROCAR_TOOL(OpCounter, "Counts how often ops of each type run")
