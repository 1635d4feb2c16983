// What a program outside the project does with Trocar: loads a model, walks and edits its graph,
// runs it on an engine, reads the tensors.
//
//     consumer MODEL IMAGES LABELS ENGINE_FOLDER EDITED_MODEL

#include <trocar/engine.h>
#include <trocar/error.h>
#include <trocar/format.h>
#include <trocar/model.h>
#include <trocar/selector.h>
#include <trocar/session.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <vector>

namespace {

using trocar::NamedValue;

// How many rows of `logits` have their largest value where `labels` says.
std::size_t count_right(std::span<const float> logits, std::span<const std::int64_t> labels) {
    const std::size_t classes = logits.size() / labels.size();
    std::size_t right = 0;
    for (std::size_t row = 0; row < labels.size(); ++row) {
        auto values = logits.subspan(row * classes, classes);
        auto best = std::max_element(values.begin(), values.end()) - values.begin();
        right += best == labels[row] ? 1U : 0U;
    }
    return right;
}

bool expect(bool holds, const char* what) {
    std::cout << (holds ? "ok      " : "FAILED  ") << what << '\n';
    return holds;
}

bool run(const std::vector<std::string>& args) {
    bool good = true;
    trocar::Model model = trocar::load(args[0]);

    std::size_t convolutions = 0;
    for (trocar::OpId id : model.graph.ops()) {
        convolutions += model.graph.op(id).type == "Conv" ? 1U : 0U;
    }
    good &= expect(convolutions == 4, "the walk finds four convolutions");
    good &= expect(model.graph.verify().empty(), "the graph is valid");

    trocar::EngineOptions options;
    options.search = {args[3]};
    options.threads = 1;
    auto engine = trocar::open_engine(options);

    const std::vector<NamedValue> inputs{{"image", trocar::load_values(args[1]).at(0).value}};
    const trocar::Value labels = trocar::load_values(args[2]).at(0).value;

    trocar::Session whole(model, engine);
    const trocar::Value logits = whole.run(inputs).at(0).value;
    const std::size_t right = count_right(logits.as<float>(), labels.as<std::int64_t>());
    std::cout << right << " of " << labels.element_count() << " digits right\n";
    good &=
        expect(right * 100 >= labels.element_count() * 97, "at least 97 % of the digits are right");

    // The same with a program per op, every value between them seen. Where the engine fuses ops of
    // the whole model the last bits may differ, so it is compared with the whole unfused.
    trocar::SessionOptions plain;
    plain.compile.optimize = trocar::CompileOptions::Optimize::none;
    trocar::Session unfused(model, engine, plain);
    const trocar::Value unfused_logits = unfused.run(inputs).at(0).value;
    trocar::SessionOptions cut;
    cut.cut = trocar::every_op();
    trocar::Session op_by_op(model, engine, cut);
    std::size_t seen = 0;
    const trocar::Value again =
        op_by_op.run(inputs, [&](const trocar::SegmentRun&) { ++seen; }).at(0).value;
    good &= expect(seen == model.graph.op_count(), "every op ran by itself");
    good &= expect(std::ranges::equal(unfused_logits.bytes(), again.bytes()),
                   "cut and whole give the same bits");

    // An edit: the logits' signs are turned.
    trocar::Graph& graph = model.graph;
    graph.insert_on(graph.outputs()[0], {.type = "Neg", .name = "turn"});
    good &= expect(graph.verify().empty(), "the edited graph is valid");
    trocar::save(model, args[4]);
    const trocar::Model edited = trocar::load(args[4]);
    trocar::Session turned(edited, engine);
    const trocar::Value negated = turned.run(inputs).at(0).value;
    good &= expect(std::ranges::equal(logits.as<float>(), negated.as<float>(),
                                      [](float a, float b) { return a == -b; }),
                   "the edited model, written and read again, turns every sign");
    return good;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (args.size() != 5) {
        std::cerr << "usage: consumer MODEL IMAGES LABELS ENGINE_FOLDER EDITED_MODEL\n";
        return 2;
    }
    try {
        return run(args) ? 0 : 1;
    } catch (const trocar::Error& error) {
        std::cerr << error.what() << '\n' << error.hint() << '\n';
        return 1;
    }
}
