#include "tools/inject/commands.h"
#include "trocar/campaign_file.h"

namespace trocar::inject {

namespace {

std::function<Report(Context&)> bind_schema(Args& args) {
    args.example("trocar inject schema > campaign.schema.json",
                 "for editors that check YAML files as they are written");
    return [](Context&) {
        Report report;
        report.tool = "inject schema";
        report.document = campaign_schema();
        return report;
    };
}

}  // namespace

extern const Command schema_command{
    .name = "schema",
    .summary = "Print the JSON Schema of campaign files",
    .bind = bind_schema,
};

}  // namespace trocar::inject
