#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace trocar {

// What is known of an operator before it has run.
struct OpFeatures {
    std::string type;        // "Conv"; "Conv + Relu" of a fused one
    std::string attributes;  // canonical text of all attributes; equal text: equal attributes
    std::string dtype;       // of its first input
    double macs = 0;
    double other_flops = 0;
    double input_bytes = 0;
    double weight_bytes = 0;
    double output_bytes = 0;
    // What else may tell, by name: sizes of the first input, weight and output ("in.1", "weight.0",
    // "out.2"…), and attributes that are numbers ("group", "stride", "kernel").
    std::vector<std::pair<std::string, double>> numbers;
};

// One that was measured, on one machine, engine and setting.
struct OpSample {
    std::string key;  // of its configuration
    OpFeatures features;
    double ns = 0;      // of one call
    double spread = 0;  // half width of its 95 % interval, as a share of ns
    double watts = 0;   // 0: not known
};

struct OpPrediction {
    enum class How { exact, interpolated, model } how = How::model;
    double ns = 0;
    double low = 0;  // 90 % interval
    double high = 0;
    double watts = 0;  // 0: not known
    double distance =
        0;             // from what it was learned from: 1 is as far as samples are from each other
    bool far = false;  // beyond what was learned: better measure it

    double joules() const { return ns * 1e-9 * watts; }  // of one call; 0: not known
};

// What the machine reaches at best. 0: estimated from the samples.
struct OpPeaks {
    double flops = 0;        // per second; a MAC is two
    double bytes = 0;        // per second
    double dispatch_ns = 0;  // of a call that does nothing
};

// A model as the operators it calls.
struct OpModel {
    std::string name;
    std::vector<std::pair<std::string, double>> operators;  // key and how often it is called
    double whole_ns = 0;  // of one run of the whole, measured; 0: not known
    double fixed_ns = 0;  // of one run, on top of its operators
};

// The interval is that of the sum: what operators cost inside of a model more or less than alone is
// not in it.
struct OpModelPrediction {
    double ns = 0;
    double low = 0;  // 90 % interval
    double high = 0;
    double joules = 0;  // of the operators; 0: the power of one or more is not known
    // Shares of the time, by how it was predicted.
    double exact = 0;
    double interpolated = 0;
    double model = 0;
    double fixed = 0;
    double far = 0;  // of those, operators that one should better measure
};

// Learns from measured operators how long others take, in this order:
//   exact         the key was measured: that time;
//   interpolated  samples of the same type, attributes and dtype lie around it: what the model
//   misses
//                 on them is interpolated, log-log in the sizes that differ;
//   model         a roofline, dispatch + max(flops / peak, bytes / bandwidth) with scales learned
//   for
//                 its type, times a residual that boosted trees learned. Trees do not extrapolate;
//                 the roofline does.
// Intervals are conformal: as wide as the errors on samples that were withheld. The order of the
// samples does not matter. A copy shares what was learned; all members may be called from many
// threads at once.
class OpPredictor {
public:
    // Samples of one key count as one, with their median time. Throws Error(usage) for a time that
    // is not positive and finite, or for other numbers that are negative or not finite.
    explicit OpPredictor(std::vector<OpSample> samples, const OpPeaks& peaks = {});

    // An empty key is never an exact hit. Throws Error(usage) when there were no samples.
    OpPrediction predict(const OpFeatures& features, const std::string& key = "") const;

    // `features` tells of operators that were not measured, by key. Throws Error(usage) for an
    // operator that was not measured and is not in it.
    OpModelPrediction predict_model(const OpModel& model,
                                    const std::map<std::string, OpFeatures>& features = {}) const;

    const OpPeaks& peaks() const;  // given, or estimated
    std::size_t size() const;      // samples, those of one key counted once

private:
    struct Learned;
    std::shared_ptr<const Learned> learned_;
};

// How near predictions of a kind came. Errors are shares of what was measured.
struct OpAccuracy {
    std::size_t count = 0;  // of predictions; all others are 0 when it is
    double mean_error = 0;  // MAPE
    double median_error = 0;
    double within_5 = 0;   // share of predictions off by at most 5 %
    double within_10 = 0;  // by at most 10 %
    double coverage = 0;   // share whose 90 % interval holds what was measured
};

struct OpEvaluation {
    struct Operator {
        std::string key;
        std::string type;
        double measured_ns = 0;
        OpPrediction predicted;
    };
    struct Model {
        std::string name;
        double measured_ns = 0;    // whole_ns
        double summed_ns = 0;      // its operators as measured, and fixed_ns
        std::size_t withheld = 0;  // operators that the predictor was not shown
        OpModelPrediction predicted;
    };
    // Each operator as predicted without it. From 40 operators on they are withheld in 20 parts,
    // for time; that is a little harder than one by one.
    OpAccuracy leave_one_operator_out;
    std::vector<Operator> operators;
    // Each model as predicted when the operators that occur in no other model are withheld: a new
    // model on a machine that has the others.
    OpAccuracy leave_one_model_out;
    std::vector<Model> models;
    // The same when every operator of the model is withheld, those it shares with others too.
    OpAccuracy leave_all_of_model_out;
    std::vector<Model> models_without_hits;
    // Names of models that were left aside: whole_ns is not known, or an operator was not measured,
    // or nothing is left to learn from.
    std::vector<std::string> left_aside;
};

// Rows come in the order of keys and of models. Throws what OpPredictor throws.
OpEvaluation evaluate(const std::vector<OpSample>& samples, const std::vector<OpModel>& models = {},
                      const OpPeaks& peaks = {});

}  // namespace trocar
#pragma GCC visibility pop
