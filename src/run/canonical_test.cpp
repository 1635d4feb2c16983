#include "run/canonical.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "run/deployed_map.h"
#include "trocar/session.h"

namespace trocar {
namespace {

std::shared_ptr<Engine> canonical_engine() {
    EngineOptions options;
    options.path = TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1";
    options.threads = 1;
    return open_engine(options);
}

// The same graph as another process might have written it: ops in another order, and other numbers
// in the names of the engine's making.
class Shuffle {
public:
    Shuffle(const Graph& source, unsigned seed) : source_(source), random_(seed) {}

    Graph operator()(const Graph& from) {
        Graph to;
        std::map<TensorId, TensorId> known;
        for (const auto id : from.inputs()) {
            known[id] = to.add_input(from.tensor(id).name, from.tensor(id).type);
        }
        const auto read = [&](TensorId id) {
            if (id == TensorId::none || known.contains(id)) {
                return id == TensorId::none ? id : known[id];
            }
            const auto& tensor = from.tensor(id);
            return known[id] = tensor.constant
                                   ? to.add_constant(name(tensor.name), *tensor.constant)
                                   : to.add_tensor(name(tensor.name), tensor.type);
        };
        for (const auto id : order(from)) {
            OpSpec spec = from.op(id);
            for (auto* list : {&spec.inputs, &spec.outputs}) {
                for (auto& tensor : *list) {
                    tensor = read(tensor);
                }
            }
            std::shuffle(spec.attributes.begin(), spec.attributes.end(), random_);
            spec.name = op_name(spec.name);
            to.append(std::move(spec));
        }
        std::vector<TensorId> outputs;
        for (const auto id : from.outputs()) {
            outputs.push_back(read(id));
        }
        to.set_outputs(std::move(outputs));
        return to;
    }

private:
    std::string name(const std::string& given) {
        return source_.find_tensor(given) ? given : fmt::format("reorder_token_{}", ++count_);
    }
    std::string op_name(const std::string& given) {
        const auto at = given.find("_token_");
        return at == std::string::npos ? given
                                       : fmt::format("{}_token_{}", given.substr(0, at), ++count_);
    }
    std::vector<OpId> order(const Graph& graph) {
        std::map<OpId, std::size_t> waits;
        std::vector<OpId> ready;
        std::vector<OpId> done;
        for (const auto id : graph.ops()) {
            waits[id] = graph.producers(id).size();
            if (waits[id] == 0) {
                ready.push_back(id);
            }
        }
        while (!ready.empty()) {
            std::swap(ready[random_() % ready.size()], ready.back());
            done.push_back(ready.back());
            ready.pop_back();
            for (const auto consumer : graph.consumers(done.back())) {
                if (--waits[consumer] == 0) {
                    ready.push_back(consumer);
                }
            }
        }
        return done;
    }

    const Graph& source_;
    std::mt19937 random_;
    int count_ = 100;
};

std::vector<std::string> lines(const Graph& graph) {
    std::vector<std::string> all;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        auto line = fmt::format("{} '{}'", op.type, op.name);
        for (const auto* list : {&op.inputs, &op.outputs}) {
            line += " :";
            for (const auto tensor : *list) {
                line += tensor == TensorId::none ? " -"
                                                 : fmt::format(" '{}'", graph.tensor(tensor).name);
            }
        }
        for (const auto& attribute : op.attributes) {
            line += " " + attribute.name;
        }
        all.push_back(std::move(line));
    }
    return all;
}

Deployed finish(const Model& source, Engine& engine, Model made) {
    Deployed deployed;
    deployed.model = std::move(made);
    order_canonically(source, deployed.model);
    map_to_sources(source, deployed);
    find_layouts(source, engine, deployed);
    name_canonically(source, deployed);
    return deployed;
}

class Canonical : public ::testing::TestWithParam<const char*> {};

TEST_P(Canonical, OrderAndNamesDoNotDependOnHowTheEngineWroteThem) {
    const auto engine = canonical_engine();
    const auto model =
        load(std::string(GetParam()) == "digits"
                 ? std::string(TROCAR_SOURCE_DIR "/models/digits.onnx")
                 : fmt::format(TROCAR_SOURCE_DIR "/build/test-models/{}.onnx", GetParam()));
    const auto written = engine->deployed(model);
    const auto expected = finish(model, *engine, clone(written));
    for (const auto& line : lines(expected.model.graph)) {
        EXPECT_EQ(std::string::npos, line.find("_token_")) << line;
    }
    for (unsigned seed = 0; seed < 5; ++seed) {
        auto other = clone(written);
        other.graph = Shuffle(model.graph, seed)(written.graph);
        const auto found = finish(model, *engine, std::move(other));
        EXPECT_EQ(lines(expected.model.graph), lines(found.model.graph));
        EXPECT_EQ(expected.layouts, found.layouts);
        EXPECT_EQ(expected.sources, found.sources);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, Canonical,
                         ::testing::Values("digits", "resnet18", "mobilenet_v2", "transformer"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace trocar
