#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "inject/runner.h"
#include "trocar/inputs.h"
#include "trocar/random.h"

namespace trocar::inject {
namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Draw {
    std::uint64_t key;
    std::uint64_t operator()(std::uint64_t trial, std::uint64_t what, std::uint64_t below) const {
        const auto w = philox(key, trial, what);
        return (std::uint64_t{w[0]} << 32 | w[1]) % below;
    }
};

Lane activation_lane(const Circuit& c, const Golden& golden, std::uint64_t trial) {
    const Draw draw{1};
    std::vector<std::pair<TensorId, std::uint64_t>> sites;
    std::uint64_t total = 0;
    for (const auto& step : c.steps()) {
        for (const auto id : step.outputs) {
            const auto& v = golden.values[index(id)];
            if (v.is_tensor() && v.dtype() == DType::f32) {
                total += element_count(plain_shape(v.shape(), c.layout(id)));
                sites.emplace_back(id, total);
            }
        }
    }
    auto place = draw(trial, 0, total);
    Lane lane;
    std::uint64_t before = 0;
    for (const auto& [id, upto] : sites) {
        if (place < upto) {
            lane.tensors.push_back({.tensor = id, .places = {place - before}, .effect = {.mask = std::uint64_t{1} << draw(trial, 1, 32)}});
            lane.first = lane.pending = c.written_at(id);
            break;
        }
        before = upto;
    }
    return lane;
}

Lane weight_lane(const Circuit& c, std::uint64_t trial) {
    const Draw draw{2};
    struct Site { std::size_t step; std::size_t slot; std::uint64_t upto; };
    std::vector<Site> sites;
    std::uint64_t total = 0;
    for (std::size_t s = 0; s < c.steps().size(); ++s) {
        const auto& op = c.graph().op(c.steps()[s].op);
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const auto id = op.inputs[slot];
            if (id != TensorId::none && c.constant(id) != nullptr && c.constant(id)->dtype() == DType::f32) {
                total += c.constant(id)->element_count();
                sites.push_back({s, slot, total});
            }
        }
    }
    auto place = draw(trial, 0, total);
    Lane lane;
    std::uint64_t before = 0;
    for (const auto& site : sites) {
        if (place < site.upto) {
            const auto& op = c.graph().op(c.steps()[site.step].op);
            const auto id = op.inputs[site.slot];
            const auto& k = *c.constant(id);
            const auto stored = stored_place(place - before, k.shape(), c.filter_layout(op, site.slot));
            std::vector<std::byte> bytes(k.bytes().begin(), k.bytes().end());
            apply({.mask = std::uint64_t{1} << draw(trial, 1, 32)}, k.dtype(), bytes, stored, place - before);
            lane.constants.push_back({site.step, id, Constant::copy(k.dtype(), k.shape(), bytes), {stored}});
            lane.first = lane.pending = site.step;
            break;
        }
        before = site.upto;
    }
    return lane;
}

bool same(const Golden& golden, const Circuit& c, const Lane& a, const Lane& b) {
    for (const auto id : c.graph().outputs()) {
        const auto value = [&](const Lane& l) {
            const auto* p = l.patch(id);
            return p == nullptr ? golden.values[index(id)] : complete(golden.values[index(id)], golden.geometries[index(id)], *p);
        };
        const auto x = value(a);
        const auto y = value(b);
        if (std::memcmp(x.bytes().data(), y.bytes().data(), x.bytes().size()) != 0) {
            return false;
        }
    }
    return a.failure == b.failure;
}

void campaign(const std::string& path, const std::shared_ptr<Engine>& engine, bool weights, std::uint64_t trials, std::uint64_t audit) {
    const auto model = load(path);
    InputSpec spec;
    spec.fill = "random(-2,2)";
    spec.unknown_dims = 1;
    const auto inputs = make_inputs(model, spec).values;
    Circuit circuit(model, engine, View::deployed);
    Runner runner(circuit, Accelerate{});
    auto golden = runner.golden(inputs);
    golden = runner.golden(inputs);
    double forward = 0;
    for (const auto s : golden.seconds) forward += s;
    std::vector<Lane> lanes;
    for (std::uint64_t t = 0; t < trials; ++t) {
        lanes.push_back(weights ? weight_lane(circuit, t) : activation_lane(circuit, golden, t));
    }
    std::stable_sort(lanes.begin(), lanes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto pristine = lanes;
    const std::size_t batch = 32;
    double spent = 0;
    for (int round = 0; round < 2; ++round) {
    lanes = pristine;
    const auto start = now();
    for (std::size_t i = 0; i < lanes.size(); i += batch) {
        runner.run(golden, std::span(lanes).subspan(i, std::min(batch, lanes.size() - i)), {});
    }
    spent = now() - start;
    }
    std::size_t dead = 0, wrong = 0;
    for (const auto& l : lanes) dead += l.patches.empty() ? 1 : 0;
    double brute = 0;
    const auto stepping = std::max<std::uint64_t>(1, trials / audit);
    std::uint64_t checked = 0;
    for (std::size_t i = 0; i < lanes.size(); i += stepping) {
        auto lane = pristine[i];
        const auto begin = now();
        runner.run_plainly(golden, lane, {});
        brute += now() - begin;
        ++checked;
        wrong += same(golden, circuit, lane, lanes[i]) ? 0 : 1;
    }
    brute /= double(checked);
    const auto& s = runner.saved();
    fmt::print("{} {}: {} trials {:.2f} ms each, forward {:.1f} ms, brute {:.1f} ms: {:.1f}x forward {:.1f}x brute; dead {:.0f}%, wrong {} of {}\n", path.substr(path.rfind('/') + 1), weights ? "weights" : "activations", trials, 1e3 * spent / double(trials), forward * 1e3, brute * 1e3, forward / (spent / double(trials)), brute / (spent / double(trials)), 100.0 * double(dead) / double(trials), wrong, checked);
    fmt::print("   whole {} ({:.2f} s) gathered {} positions {} ({:.2f} s) blocks {} ({:.2f} s) rebuilt {} ({:.2f} s) uncalibrated {} golden {} MB\n", s.whole, s.seconds_whole, s.gathered, s.positions, s.seconds_gathered, s.blocks, s.seconds_blocks, s.rebuilt, s.seconds_rebuilt, s.uncalibrated, golden.bytes >> 20);
    fmt::print("   ideal: whole {:.2f} gathered {:.2f} forwards per trial\n", s.ideal_whole/forward/double(2*trials), s.ideal_gathered/forward/double(2*trials));
}

}  // namespace
}  // namespace trocar::inject

int main(int argc, char** argv) {
    using namespace trocar;
    const std::string models = argv[1];
    EngineOptions options;
    for (const auto& entry : std::filesystem::directory_iterator(argv[2])) {
        if (entry.path().filename().string().starts_with("onnxruntime-1.3")) {
            options.search.push_back(entry.path().string());
        }
    }
    options.threads = 1;
    const auto engine = open_engine(options);
    const std::uint64_t trials = argc > 3 ? std::stoull(argv[3]) : 300;
    for (const auto* name : {"resnet50", "mobilenet_v2"}) {
        for (const bool weights : {false, true}) {
            inject::campaign(models + "/" + name + ".onnx", engine, weights, trials, 40);
        }
    }
}
