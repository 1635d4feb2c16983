#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/data.h"
#include "trocar/engine.h"
#include "trocar/inputs.h"
#include "trocar/model.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

struct Cell;
struct Report;
struct Table;

// Inputs of a model, one set after the other; false: there are no more.
using InputSets = std::function<bool(std::size_t number, std::vector<NamedValue>& inputs)>;
using Labels = std::function<std::int64_t(std::size_t number)>;  // -1: none
using QualityProgress = std::function<void(std::string_view what, std::uint64_t done)>;

// How near a model is to the one it was made of, layer by layer.
struct LayerQuality {
    std::string tensor;
    std::string type;    // of the op that makes it
    double sqnr_db = 0;  // over all inputs; infinite: the same
};
struct Quality {
    std::vector<LayerQuality> layers;   // in order
    std::vector<LayerQuality> outputs;  // of the model as the engine runs it, with integer kernels
    std::size_t samples = 0;
    std::size_t labelled = 0;
    std::size_t right_before = 0;  // largest element of the first output is the label
    std::size_t right_after = 0;
    std::size_t choices = 0;   // rows of the first output, where it is of f32
    std::size_t agreeing = 0;  // of them, where both choose the same
};

// Where a model has less of a tensor: the places along an axis that it still has.
struct KeptPlaces {
    std::size_t axis = 0;
    std::vector<std::int64_t> places;
};
using KeptTensors = std::map<std::string, std::vector<KeptPlaces>>;

struct QualityOptions {
    bool layers = true;                         // each layer, besides the outputs
    std::shared_ptr<Engine> engine_after = {};  // runs the second model; nullptr: the same one
    KeptTensors kept = {};
};

// Tensors are compared by name, those of `kept` in the places that both models have.
Quality compare_quality(const Model& before, const Model& after,
                        const std::shared_ptr<Engine>& engine, const InputSets& inputs,
                        const Labels& labels = {}, const QualityProgress& progress = {},
                        const QualityOptions& options = {});

// The inputs that a tool compares models on: samples of --data, or one set as --input and --fill
// say.
class QualityInputs {
public:
    // Throws Error(input) on data that does not fit the model.
    QualityInputs(const DataArguments& data, const InputSpec& inputs, const Model& model,
                  std::uint64_t seed);
    // Was anything said about inputs at all?
    static bool given(const DataArguments& data, const InputSpec& inputs);

    bool operator()(std::size_t number, std::vector<NamedValue>& values) const;
    std::int64_t label(std::size_t number) const;
    std::size_t size() const { return most_; }

private:
    std::shared_ptr<const Dataset> data_;
    std::vector<NamedValue> fixed_;
    std::size_t most_ = 0;
};

// For the reports of tools: accuracy, same choices and SQNR of the outputs as a section, of the
// engine that is named where it is another one; the layers as a table.
Cell decibels(double db);  // for Show::decibels; infinite: a text, "same" or "lost"
void add_quality_section(const Quality& quality, Report& report, const std::string& engine = "");
Table quality_table(const Quality& quality);

}  // namespace trocar
#pragma GCC visibility pop
