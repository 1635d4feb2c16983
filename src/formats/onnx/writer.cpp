#include "formats/onnx/writer.h"

#include <algorithm>

#include "formats/onnx/declaration.h"
#include "formats/onnx/graph_reader.h"
#include "formats/onnx/graph_writer.h"
#include "formats/onnx/schema.h"
#include "trocar/error.h"

namespace trocar::onnx {

using namespace schema;

Placements keep_places() {
    return {.main = [](const Constant& constant, std::string_view) { return constant.external(); },
            .nested = placed_as_read,
            .attribute = placed_as_read,
            .moves = false};
}

namespace {

// A domain is only written where it is another one: "ai.onnx" may stand for the empty one.
void rewrite_domain(Rewrite& message, Number number, std::string_view domain, Bytes base) {
    const File file{"", base, nullptr, {}, false};
    std::string_view old;
    for (Fields at(file, base); at.next();) {
        if (at.number() == number) {
            old = at.text();
        }
    }
    if (plain_domain(old) != domain) {
        message.text(number, domain);
    }
}

}  // namespace

void rewrite_op_domain(Rewrite& message, std::string_view domain, Bytes base) {
    rewrite_domain(message, node::domain, domain, base);
}

Rope write_function(const Function& function, const Placements& places) {
    const auto base = function.source.bytes;
    Rewrite message(base);
    const GraphWriter writer(function.body, places, GraphWriter::Kind::function);
    message.text(function::name, function.name);
    message.texts(function::attribute, function.attributes);
    message.text(function::doc, function.doc);
    rewrite_opsets(message, function::opset, function.opsets);
    rewrite_domain(message, function::domain, function.domain, base);
    message.list(function::attribute_default, function.defaults.size(),
                 [&](Rope& out, std::size_t k, const Fields* slot) {
                     put_message(out, function::attribute_default,
                                 write_attribute(function.defaults[k], places), slot);
                 });
    message.text(function::overload, function.overload);
    rewrite_properties(message, function::metadata, function.metadata);
    writer.mention(message, base);
    return message.finish();
}

Rope write_model(const Model& model, const Placements& places) {
    if (model.dialect != "onnx") {
        throw Error(Fault::unsupported,
                    "the ops of this model are not those of ONNX: it cannot be written as ONNX",
                    "write it in the format it was read from");
    }
    const auto base = model.source.bytes;
    Rewrite message(base);
    message.integer(model::ir_version, model.ir_version);
    message.text(model::producer, model.producer);
    message.text(model::producer_version, model.producer_version);
    message.text(model::domain, model.domain);
    message.integer(model::version, model.model_version);
    message.text(model::doc, model.doc);
    message.list(model::graph, 1, [&](Rope& out, std::size_t, const Fields* slot) {
        put_message(out, model::graph, write_graph(model.graph, places, GraphWriter::Kind::main),
                    slot);
    });
    rewrite_opsets(message, model::opset, model.opsets);
    rewrite_properties(message, model::metadata, model.metadata);
    message.list(
        model::function, model.functions.size(), [&](Rope& out, std::size_t k, const Fields* slot) {
            put_message(out, model::function, write_function(*model.functions[k], places), slot);
        });
    return message.finish();
}

}  // namespace trocar::onnx
