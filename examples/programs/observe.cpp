// Instruments in a program of one's own: observe, change and replace while a model runs. The model
// is not touched.
//
//     observe MODEL INPUT.npy ENGINE_FOLDER
#include <trocar/error.h>
#include <trocar/format.h>
#include <trocar/model.h>
#include <trocar/session.h>
#include <trocar/tool.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace {

using namespace trocar;

float max_size(const Value& value) {
    float most = 0;
    for (const float number : value.as<float>()) {
        most = std::max(most, std::abs(number));
    }
    return most;
}

void show(const char* what, const std::vector<NamedValue>& outputs) {
    std::cout << what << ": largest logit " << max_size(outputs.at(0).value) << '\n';
}

void instrument(const Model& model, const Value& images, const EngineOptions& engine) {
    const std::vector<NamedValue> inputs{{"image", images}};

    // A callback that takes `const Port&` observes. Here: after the convolutions of one module.
    float worst = 0;
    Tool look("look");
    look.after(op("Conv") & in_module("block.*"),
               [&](const Port& port) { worst = std::max(worst, max_size(port.output(0))); });
    show("observed", run(model, inputs, look, engine));
    std::cout << "largest output of a convolution in the block: " << worst << '\n';

    // One that takes `Port&` may change things. What this op reads, and nobody else:
    Tool zero("zero");
    zero.before(op("Gemm"), [](Port& port) { port.writable_input(0).fill(0); });
    show("with zeros before the classifier", run(model, inputs, zero, engine));

    // Our code in the place of an op.
    Tool leaky("leaky");
    leaky.replace(op("Relu") & in_module("tail.*"), [](Port& port) {
        const auto& in = port.input(0);
        const auto from = in.as<float>();
        const auto to = port.make_output(0, in.dtype(), in.shape()).as<float>();
        std::transform(from.begin(), from.end(), to.begin(),
                       [](float x) { return x < 0 ? 0.1F * x : x; });
    });
    show("with another activation", run(model, inputs, leaky, engine));

    // Several tools in one run share one plan; a session runs it many times.
    SessionOptions options;
    options.tools = {&look, &zero};
    Session session(model, engine, options);
    show("both", session.run(inputs));
    const auto ports = session.ports();
    std::cout << ports.taps << " taps, " << ports.cuts << " cuts\n";
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: observe MODEL INPUT.npy ENGINE_FOLDER\n";
        return 2;
    }
    try {
        const auto model = load(argv[1]);
        EngineOptions engine;
        engine.search = {argv[3]};
        instrument(model, load_values(argv[2]).at(0).value, engine);
        return 0;
    } catch (const Error& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
