#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trocar/compare.h"
#include "trocar/parts.h"
#include "trocar/side.h"

#pragma GCC visibility push(default)
namespace trocar {

// A lab is a folder with the layers of a model, each one a model of its own with the inputs that it
// has in a real run and the outputs that an engine gave for them. docs/lab.md has the files.

// A value in a lab, in one or several files of the same content.
struct LabValue {
    std::string name;
    Type type;
    std::map<std::string, std::string> files;  // by kind: "npy", "bin", "pb"; relative to the layer
    std::map<std::string, std::string> sha256;  // likewise
};

struct LabSample {
    std::vector<LabValue> inputs;
    std::vector<LabValue> outputs;
};

struct LabLayer {
    std::size_t number = 0;
    std::string folder;  // relative to the lab
    std::string name;
    std::string type;
    std::string module;
    std::vector<std::string> ops;
    std::string error;  // why there is no layer to run; empty: there is one
    // All from here on is in the layer's own manifest, which read_lab reads too.
    std::string model_file = "model.onnx";
    std::string model_sha256;
    std::vector<LabSample> samples;
    std::map<std::string, Tolerance> tolerances;  // by output
    std::vector<std::string> occurrences;         // further layers that are alike
};

struct Lab {
    std::filesystem::path folder;
    std::string model;
    std::string model_sha256;
    std::string engine;  // that made the golden outputs
    std::uint64_t seed = 0;
    std::vector<LabLayer> layers;
    bool complete = false;
};

struct SplitOptions {
    std::filesystem::path folder;
    std::vector<std::string> kinds = {"npy", "bin", "pb"};  // of files for tensors
    Selector select = every_op();  // layers with one of these ops are written
    Selector views = {};           // pictures of what these ops write
    std::string format = {};       // that layers are written in; empty: that of the model
    bool unique = false;           // of layers that differ in weights only, the first one is
    std::uint64_t seed = 0;
    std::string by;                                                          // for the manifest
    std::function<bool(std::size_t done, std::size_t total)> progress = {};  // false: stop
};

// Writes a lab. A layer that cannot be run or written has a file with the reason instead of data.
// Throws Error(usage) when the folder has something in it.
Lab split(const Chain& chain, const std::vector<Part>& parts, Side& side,
          const std::vector<std::vector<NamedValue>>& sets, const SplitOptions& options);

// Throws Error(input) on what is no lab. Layers whose manifest cannot be read have an `error`.
Lab read_lab(const std::filesystem::path& folder);

struct LabRunOptions {
    SideOptions side;
    std::string name;  // of the results
    int jobs = 1;
    bool cumulative = false;  // feed layers what earlier ones gave here; one after the other
    bool fresh = false;       // run again what was run already
    Selector select = every_op();
    std::function<bool(std::size_t done, std::size_t total)> progress = {};  // false: stop
};

// What became of one layer.
struct LabResult {
    std::size_t layer = 0;
    RunEnd end = RunEnd::failed;
    std::string reason;
    double seconds = 0;      // of the run, all samples
    bool was_there = false;  // from an earlier run
};

// Runs the layers, each in a process of its own; the results stand beside the golden data.
std::vector<LabResult> run_lab(const Lab& lab, const LabRunOptions& options);

// The name under which results of a side are kept, unless another one is chosen.
std::string result_name(const SideOptions& side);
// Names of all results that are there.
std::vector<std::string> result_names(const Lab& lab);

// Compares results with the golden outputs. `names` empty: all that are there.
Comparison compare_lab(const Lab& lab, const std::vector<std::string>& names,
                       const Judging& judging,
                       const std::function<bool(std::size_t, std::size_t)>& progress);

}  // namespace trocar
#pragma GCC visibility pop
