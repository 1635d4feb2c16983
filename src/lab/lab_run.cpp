#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "lab/command_side.h"
#include "lab/files.h"
#include "lab/outputs.h"
#include "run/isolate.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/lab.h"
#include "util/file_stem.h"
#include "util/files.h"
#include "util/sha256.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using lab::StoredResult;

// One layer under way: what it is given, and where its results go.
class LayerRun {
public:
    LayerRun(const Lab& lab, const LabLayer& layer, const LabRunOptions& options,
             const std::string& label)
        : lab_(lab),
          layer_(layer),
          options_(options),
          folder_(lab.folder / layer.folder),
          results_(lab::result_path(lab, layer, options.name, options.cumulative)) {
        result_.side = label;
        result_.model_sha256 = layer.model_sha256;
    }

    // Has it been run already, on this model?
    std::optional<LabResult> earlier() const {
        const auto found = lab::read_result(results_);
        if (options_.fresh || !found || found->model_sha256 != layer_.model_sha256) {
            return std::nullopt;
        }
        return LabResult{layer_.number, found->end, found->reason, found->seconds, true};
    }

    // `inputs` by sample; empty: the golden ones.
    LabResult run(const std::vector<std::vector<Value>>& inputs) {
        fs::remove_all(results_);
        fs::create_directories(results_);
        try {
            check();
            if (options_.side.command.empty()) {
                run_engine(inputs);
            } else {
                run_command(inputs);
            }
        } catch (const Error& error) {
            if (error.fault() == Fault::interrupted || error.fault() == Fault::internal) {
                throw;
            }
            if (result_.end == RunEnd::done) {
                result_.end = RunEnd::failed;
            }
            result_.reason = error.what();
        }
        write_file(results_ / lab::result_file, lab::result_json(result_));
        return {layer_.number, result_.end, result_.reason, result_.seconds, false};
    }

private:
    void check() {
        if (!layer_.error.empty()) {
            throw Error(Fault::input, fmt::format("there is no layer to run: {}", layer_.error));
        }
        const auto model = lab::model_in(folder_);
        std::error_code ignored;
        if (!fs::exists(model, ignored)) {
            throw Error(Fault::input, fmt::format("'{}' is missing", model.string()));
        }
        if (sha256_of_file(model) != layer_.model_sha256) {
            throw Error(Fault::input, fmt::format("'{}' is not what was written: its hash differs",
                                                  model.string()));
        }
        result_.end = RunEnd::done;
    }

    std::vector<Value> inputs_of(std::size_t sample,
                                 const std::vector<std::vector<Value>>& given) const {
        if (!given.empty()) {
            return given[sample];
        }
        std::vector<Value> inputs;
        for (const auto& input : layer_.samples[sample].inputs) {
            inputs.push_back(lab::load_value(folder_, input));
        }
        return inputs;
    }

    void keep(std::size_t sample, const std::vector<Value>& outputs) {
        const auto folder = results_ / fmt::format("{}", sample);
        fs::create_directories(folder);
        std::vector<std::string> files;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto path =
                save_value({"", outputs[i]}, folder, fmt::format("output_{}", i), Sync::no);
            files.push_back(fmt::format("{}/{}", sample, path.filename().string()));
        }
        result_.outputs.push_back(std::move(files));
    }

    void run_engine(const std::vector<std::vector<Value>>& given) {
        const auto& side = options_.side;
        const auto path = lab::model_in(folder_);
        Isolated process(
            [&](const Log& log) -> Isolated::Work {
                auto engine_options = side.engine;
                engine_options.log = log;
                const auto engine = open_engine(engine_options);
                const auto model = std::make_shared<Model>(load(path));
                CompileOptions how;
                how.optimize = side.optimize;
                const std::shared_ptr<Program> program = engine->compile(*model, how);
                return [engine, model, program](const std::vector<NamedValue>& request) {
                    std::vector<Value> inputs;
                    for (const auto& one : request) {
                        inputs.push_back(one.value);
                    }
                    std::vector<Value> outputs(program->output_names().size());
                    const auto start = Clock::now();
                    program->run(inputs, outputs);
                    const double seconds =
                        std::chrono::duration<double>(Clock::now() - start).count();
                    std::vector<NamedValue> answer;
                    for (const auto& output : outputs) {
                        answer.push_back({"", output});
                    }
                    answer.push_back(
                        {"", Value::copy(DType::f64, {}, std::as_bytes(std::span(&seconds, 1)))});
                    return answer;
                };
            },
            Isolated::Options{.log = side.engine.log,
                              .timeout = side.time_limit,
                              .memory_limit = side.memory_limit,
                              .doing = "running this layer"});
        try {
            for (std::size_t sample = 0; sample < layer_.samples.size(); ++sample) {
                std::vector<NamedValue> request;
                for (const auto& input : inputs_of(sample, given)) {
                    request.push_back({"", input});
                }
                const auto answer = process.run(request);
                std::vector<Value> outputs;
                for (std::size_t i = 0; i + 1 < answer.size(); ++i) {
                    outputs.push_back(answer[i].value);
                }
                result_.seconds += answer.back().value.as<double>().front();
                keep(sample, outputs);
            }
        } catch (const Error&) {
            using End = Isolated::End;
            result_.end = process.end() == End::silent        ? RunEnd::hung
                          : process.end() == End::over_memory ? RunEnd::over_memory
                          : process.end() == End::none        ? RunEnd::failed
                                                              : RunEnd::crashed;
            throw;
        }
    }

    void run_command(const std::vector<std::vector<Value>>& given) {
        std::vector<std::string> names;
        std::vector<Type> types;
        for (std::size_t sample = 0; sample < layer_.samples.size(); ++sample) {
            names.clear();
            types.clear();
            for (const auto& output : layer_.samples[sample].outputs) {
                names.push_back(output.name);
                types.push_back(output.type);
            }
            const auto work = fs::absolute(results_ / "work");
            fs::remove_all(work);
            fs::create_directories(work / "outputs");
            fs::create_directories(work / "inputs");
            const lab::CommandFiles files{fs::absolute(lab::model_in(folder_)).string(),
                                          (work / "inputs").string(), (work / "outputs").string()};
            give_inputs(sample, given, work / "inputs");
            auto run = lab::run_on_files(options_.side, files, {});
            result_.seconds += run.seconds;
            if (run.end != RunEnd::done) {
                result_.end = run.end;
                result_.reason = run.reason;
                fs::remove_all(work);
                return;
            }
            std::vector<Value> outputs;
            try {
                outputs = lab::read_outputs(files.outputs, names, types);
                lab::check_outputs(outputs, names, types);
                keep(sample, outputs);
            } catch (const Error& error) {
                result_.end = RunEnd::bad_output;
                result_.reason = error.what() + hint(sample, outputs);
                fs::remove_all(work);
                return;
            }
            fs::remove_all(work);
        }
    }

    // Why outputs may have been refused.
    std::string hint(std::size_t sample, const std::vector<Value>& refused) const {
        const auto& outputs = layer_.samples[sample].outputs;
        std::vector<Value> golden;
        try {
            for (const auto& output : outputs) {
                golden.push_back(lab::load_value(folder_, output));
            }
        } catch (const Error&) {
            return {};  // said when they are compared
        }
        return lab::refusal_hint(golden, refused, [&](std::size_t i) {
            const auto found = layer_.tolerances.find(outputs[i].name);
            return found == layer_.tolerances.end() ? Tolerance{} : found->second;
        });
    }

    // The golden files under further names, or those of what arrives.
    void give_inputs(std::size_t sample, const std::vector<std::vector<Value>>& given,
                     const fs::path& folder) const {
        if (!given.empty()) {
            lab::write_inputs(folder.string(), given[sample]);
            return;
        }
        const auto& inputs = layer_.samples[sample].inputs;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            (void)lab::load_value(folder_, inputs[i]);  // looks at its hash
            for (const auto& [kind, file] : inputs[i].files) {
                const auto from = lab::inside(folder_, file);
                const auto to = folder / fmt::format("input_{}.{}", i, kind);
                std::error_code failed;
                fs::create_hard_link(from, to, failed);
                if (failed) {
                    fs::copy_file(from, to, fs::copy_options::overwrite_existing, failed);
                }
                if (kind == "bin") {
                    fs::copy_file(fs::path(from).replace_extension(".json"),
                                  fs::path(to).replace_extension(".json"),
                                  fs::copy_options::overwrite_existing, failed);
                }
            }
        }
    }

    const Lab& lab_;
    const LabLayer& layer_;
    const LabRunOptions& options_;
    fs::path folder_;
    fs::path results_;
    StoredResult result_;
};

// The engine's name and version, asked in a process of its own.
std::string label_of(const SideOptions& side) {
    if (!side.command.empty()) {
        return side.text;
    }
    Isolated process(
        [&](const Log& log) -> Isolated::Work {
            auto options = side.engine;
            options.log = log;
            const auto engine = open_engine(options);
            return [engine](const std::vector<NamedValue>&) {
                return std::vector<NamedValue>{{"", Value::strings({1}, {engine->info().version})}};
            };
        },
        Isolated::Options{.log = side.engine.log, .doing = "opening the engine"});
    auto label =
        fmt::format("{} {}", side.engine.name, process.run({}).front().value.string_values()[0]);
    if (const auto comma = side.text.find(','); comma != std::string::npos) {
        label += fmt::format(" ({})", side.text.substr(comma + 1));
    }
    return label;
}

class LabRun {
public:
    LabRun(const Lab& lab, const LabRunOptions& options)
        : lab_(lab), options_(options), label_(label_of(options.side)) {
        results_.resize(lab.layers.size());
    }

    std::vector<LabResult> run() {
        if (options_.cumulative) {
            one_by_one();
        } else {
            side_by_side();
        }
        std::vector<LabResult> finished;
        for (const auto& result : results_) {
            if (result) {
                finished.push_back(*result);
            }
        }
        return finished;
    }

private:
    bool tell() {
        const std::lock_guard lock(mutex_);
        stopped_ = stopped_ || (options_.progress && !options_.progress(done_, lab_.layers.size()));
        return !stopped_;
    }

    void side_by_side() {
        std::atomic<std::size_t> next = 0;
        std::exception_ptr failure;
        const auto work = [&] {
            for (auto i = next++; i < lab_.layers.size() && tell(); i = next++) {
                try {
                    LayerRun layer(lab_, lab_.layers[i], options_, label_);
                    auto result = layer.earlier();
                    results_[i] = result ? *result : layer.run({});
                    ++done_;
                } catch (...) {
                    const std::lock_guard lock(mutex_);
                    failure = std::current_exception();
                    stopped_ = true;
                }
            }
        };
        std::vector<std::thread> threads;
        for (int i = 1; i < options_.jobs; ++i) {
            threads.emplace_back(work);
        }
        work();
        for (auto& thread : threads) {
            thread.join();
        }
        if (failure) {
            std::rethrow_exception(failure);
        }
        tell();
    }

    // Each layer is given what earlier ones gave here; where they gave nothing, the golden values.
    void one_by_one() {
        std::map<std::pair<std::string, std::size_t>, fs::path> own;
        for (std::size_t i = 0; i < lab_.layers.size() && tell(); ++i) {
            const auto& layer = lab_.layers[i];
            std::vector<std::vector<Value>> inputs(layer.samples.size());
            try {
                for (std::size_t sample = 0; sample < layer.samples.size(); ++sample) {
                    for (const auto& input : layer.samples[sample].inputs) {
                        const auto found = own.find({input.name, sample});
                        inputs[sample].push_back(
                            found == own.end() ? lab::load_value(lab_.folder / layer.folder, input)
                                               : load_values(found->second).at(0).value);
                    }
                }
            } catch (const Error&) {
                inputs.clear();  // said when the layer is run
            }
            LayerRun run(lab_, layer, options_, label_);
            auto result = run.earlier();
            results_[i] = result ? *result : run.run(inputs);
            ++done_;
            const auto folder = lab::result_path(lab_, layer, options_.name, true);
            const auto stored = lab::read_result(folder);
            for (std::size_t sample = 0;
                 stored && stored->end == RunEnd::done && sample < stored->outputs.size();
                 ++sample) {
                for (std::size_t k = 0;
                     k < stored->outputs[sample].size() && k < layer.samples[sample].outputs.size();
                     ++k) {
                    own[{layer.samples[sample].outputs[k].name, sample}] =
                        lab::inside(folder, stored->outputs[sample][k]);
                }
            }
        }
        tell();
    }

    const Lab& lab_;
    const LabRunOptions& options_;
    std::string label_;
    std::vector<std::optional<LabResult>> results_;
    std::mutex mutex_;
    std::atomic<std::size_t> done_ = 0;
    std::atomic<bool> stopped_ = false;
};

}  // namespace

std::vector<LabResult> run_lab(const Lab& lab, const LabRunOptions& options) {
    auto with_name = options;
    if (with_name.name.empty()) {
        with_name.name = result_name(options.side);
    }
    return lab::on_files([&] { return LabRun(lab, with_name).run(); });
}

std::string result_name(const SideOptions& side) {
    return FileStems().add(side.command.empty() ? side.text : "command");
}

std::vector<std::string> result_names(const Lab& lab) {
    std::set<std::string> names;
    for (const auto& layer : lab.layers) {
        std::error_code failed;
        for (const auto& entry :
             fs::directory_iterator(lab.folder / layer.folder / lab::results_folder, failed)) {
            names.insert(entry.path().filename().string());
        }
    }
    return {names.begin(), names.end()};
}

}  // namespace trocar
