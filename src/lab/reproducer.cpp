#include <fmt/format.h>

#include "base/json.h"
#include "lab/files.h"
#include "trocar/bisect.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

// Reads its own folder and needs numpy, and the engines' Python packages where they are to be run.
constexpr const char* script = R"py(#!/usr/bin/env python3
"""Runs a model on two sides and compares what they give. Exit code 1: they differ.

Needs numpy and the Python packages of the engines. A side whose package is not there, or that
Python cannot run, is not run: what it gave when this was written is read instead.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

here = pathlib.Path(__file__).resolve().parent
about = json.loads((here / "about.json").read_text())


def load(folder, names):
    return [np.load(here / folder / f"{name}.npy") for name in names]


def run_onnxruntime(side, inputs):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = side["threads"]
    if side["optimize"] == "none":
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(here / side["model"]), options,
                                   providers=["CPUExecutionProvider"])
    feed = {i.name: v for i, v in zip(session.get_inputs(), inputs)}
    return session.run(None, feed), f"onnxruntime {ort.__version__}"


def run_openvino(side, inputs):
    import openvino as ov

    core = ov.Core()
    model = core.read_model(here / side["model"])
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    result = compiled(list(inputs))
    return [result[o] for o in compiled.outputs], f"openvino {ov.__version__}"


def run_command(side, inputs):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "inputs").mkdir()
        (folder / "outputs").mkdir()
        for i, value in enumerate(inputs):
            np.save(folder / "inputs" / f"input_{i}.npy", value)
        command = side["command"]
        for key, path in (("model", here / side["model"]), ("inputs", folder / "inputs"),
                          ("outputs", folder / "outputs")):
            command = command.replace("{" + key + "}", shlex.quote(str(path)))
        subprocess.run(command, shell=True, check=True)
        count = len(about["outputs"])
        return [np.load(folder / "outputs" / f"output_{i}.npy") for i in range(count)], "the command"


def run(side, inputs, folder):
    runner = {"onnxruntime": run_onnxruntime, "openvino": run_openvino,
              "command": run_command}.get(side["kind"])
    try:
        if runner:
            return runner(side, inputs)
    except ImportError as error:
        print(f"{side['label']} is not run: {error}")
    return load(folder, about["output_files"]), f"{side['label']}, as it was"


inputs = load("inputs", about["input_files"])
a, label_a = run(about["sides"][0], inputs, "reference")
b, label_b = run(about["sides"][1], inputs, "found")
differs = False
for name, tolerance, x, y in zip(about["outputs"], about["tolerances"], a, b):
    if x.shape != y.shape or x.dtype != y.dtype:
        print(f"{name}: {x.dtype}{list(x.shape)} against {y.dtype}{list(y.shape)}")
        differs = True
        continue
    left, right = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.abs(right - left)
        off[(left == right) | (np.isnan(left) & np.isnan(right))] = 0
        off[np.isnan(off)] = np.inf
        beyond = off > tolerance["atol"] + tolerance["rtol"] * np.abs(left)
    worst = np.unravel_index(np.argmax(off), off.shape) if off.size else ()
    print(f"{name}: {int(beyond.sum())} of {off.size} beyond atol {tolerance['atol']:.3g}, "
          f"rtol {tolerance['rtol']:.3g}; off by {off[worst] if off.size else 0:.6g} at most, at "
          f"{list(map(int, worst))}: {left[worst]:.9g} ({label_a}), {right[worst]:.9g} ({label_b})")
    differs = differs or bool(beyond.any())
print("they differ" if differs else "they agree")
sys.exit(1 if differs else 0)
)py";

Json side_json(const SideOptions& side, const std::string& label, const std::string& model) {
    auto json = Json::object(Json::Order::given);
    json["kind"] = side.command.empty() ? side.engine.name : "command";
    json["label"] = label;
    json["model"] = model;
    json["threads"] = side.engine.threads;
    json["optimize"] = side.optimize == CompileOptions::Optimize::none ? "none" : "default";
    json["command"] = side.command;
    return json;
}

std::vector<std::string> write_values(const std::vector<NamedValue>& values, const fs::path& folder,
                                      const char* stem) {
    fs::create_directories(folder);
    std::vector<std::string> files;
    for (std::size_t i = 0; i < values.size(); ++i) {
        files.push_back(fmt::format("{}_{}", stem, i));
        save_value({"", values[i].value}, folder, files.back(), Sync::no);
    }
    return files;
}

// Inputs in the order in which the model has them.
std::vector<NamedValue> in_order(const Model& model, const std::vector<NamedValue>& inputs) {
    std::vector<NamedValue> ordered;
    for (const auto id : model.graph.inputs()) {
        for (const auto& input : inputs) {
            if (input.name == model.graph.tensor(id).name) {
                ordered.push_back(input);
            }
        }
    }
    return ordered;
}

std::string side_option(const SideOptions& side) {
    return side.command.empty() ? fmt::format("--engine '{}'", side.text)
                                : fmt::format("--command '{}'", side.command);
}

void write_all(const Bisection& bisection, const SideOptions& reference, const SideOptions& second,
               const fs::path& folder) {
    std::error_code failed;
    if (fs::exists(folder, failed) && !fs::is_empty(folder, failed)) {
        throw Error(Fault::usage, fmt::format("'{}' has something in it", folder.string()),
                    "name a new folder for the reproducer");
    }
    fs::create_directories(folder, failed);
    const auto first = lab::model_file(lab::format_of(bisection.reference_model));
    const auto second_file = lab::model_file(lab::format_of(bisection.other_model), "other");
    save(bisection.reference_model, folder / first, {.external = ExternalPolicy::inlined});
    save(bisection.other_model, folder / second_file, {.external = ExternalPolicy::inlined});
    const bool same = read_file(folder / first) == read_file(folder / second_file);
    if (same) {
        fs::remove(folder / second_file, failed);
    }
    const auto& other = same ? first : second_file;
    const auto inputs = in_order(bisection.reference_model, bisection.inputs);
    auto about = Json::object(Json::Order::given);
    about["sides"] = Json::array({side_json(reference, bisection.sides[0], first),
                                  side_json(second, bisection.sides[1], other)});
    about["input_files"] = write_values(inputs, folder / "inputs", "input");
    about["output_files"] = write_values(bisection.reference, folder / "reference", "output");
    write_values(bisection.other, folder / "found", "output");
    about["outputs"] = Json::array();
    about["tolerances"] = Json::array();
    for (const auto& output : bisection.reference) {
        about["outputs"].push_back(output.name);
        Tolerance tolerance;
        for (const auto& tensor : bisection.difference.tensors) {
            tolerance = tensor.tensor == output.name ? tensor.tolerance : tolerance;
        }
        about["tolerances"].push_back(
            Json::object(Json::Order::given, {{"rtol", tolerance.rtol}, {"atol", tolerance.atol}}));
    }
    write_file(folder / "about.json", about.dump(1));
    write_file(folder / "reproduce.py", script);
    fs::permissions(folder / "reproduce.py", fs::perms::owner_exec, fs::perm_options::add, failed);
    std::string given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        given += fmt::format(" --input '{}=inputs/input_{}.npy'", inputs[i].name, i);
    }
    std::string text = fmt::format("# {} '{}': {} and {} differ\n\n", bisection.culprit.type,
                                   bisection.culprit.name, bisection.sides[0], bisection.sides[1]);
    for (const auto& step : bisection.path) {
        text += fmt::format("Found inside of {}.\n", step);
    }
    for (const auto& tensor : bisection.difference.tensors) {
        text += fmt::format("- `{}`: {}\n", tensor.tensor,
                            tensor.reason.empty() ? "agrees" : tensor.reason);
    }
    text += fmt::format(
        "\n`{}`{} is the smallest part that shows it, `inputs/` what it is given, "
        "`reference/` and `found/` what came of it.\n\nWithout Trocar:\n\n    python3 "
        "reproduce.py\n\nWith it:\n\n    trocar compare {}{} {} {} --by segment --cut all "
        "--all{}\n",
        first, same ? "" : fmt::format(" (and `{}` for the second side)", second_file), first,
        same ? "" : fmt::format(" --against {}", second_file), side_option(reference),
        side_option(second), given);
    write_file(folder / "README.md", text);
}

}  // namespace

void write_reproducer(const Bisection& bisection, const SideOptions& reference,
                      const SideOptions& second, const fs::path& folder) {
    lab::on_files([&] {
        write_all(bisection, reference, second, folder);
        return 0;
    });
}

}  // namespace trocar
