#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/graph.h"
#include "trocar/preprocess.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

class Args;

// Where samples for a model come from, as a user says it.
struct DataOptions {
    // images: a folder with labels.csv (file,label), with a sub-folder for each class, or with
    //         pictures alone; one picture. PNG and JPEG
    // arrays: .npz, a folder of .npy, one .npy
    // idx:    MNIST's files, also gzipped: a folder, or the file of the images
    // cifar10, cifar100: the binary version: a folder, or one .bin
    // events: AEDAT 3.1 recordings, with NAME_labels.csv (class,startTime_usec,endTime_usec)
    std::filesystem::path path;
    std::string kind;              // one of these; empty: found out
    std::filesystem::path labels;  // where they are not beside the data; of the same kind
    std::string split;             // of data that comes in two: "test" (also empty) or "train"
    Preprocess preprocess;
    std::int64_t offset = 0;              // samples left out in front
    std::optional<std::int64_t> limit;    // at most so many
    std::optional<std::int64_t> classes;  // labels must be below it
};

struct Sample {
    std::vector<NamedValue> inputs;  // of the model, in its order; batches of one
    std::optional<std::int64_t> label;
    std::string name;  // "cats/7.png", "train 12"
};

// Samples that fit a model. Any number of threads may read.
class Dataset {
public:
    virtual ~Dataset() = default;

    virtual std::size_t size() const = 0;  // never 0
    // Reads and preprocesses. Throws Error(usage) beyond the end, Error(input) on a file that
    // cannot be read or a sample that does not fit the model.
    virtual Sample sample(std::size_t index) const = 0;
    // Without reading the sample.
    virtual std::optional<std::int64_t> label(std::size_t index) const = 0;
    virtual std::string name(std::size_t index) const = 0;

    virtual bool labelled() const = 0;  // all samples have a label, or none has
    virtual const std::vector<std::string>& class_names() const = 0;  // by label; may be empty
    // "300 pictures of 'val' with labels 0 to 9", for reports.
    virtual std::string description() const = 0;
    virtual const std::vector<std::string>& notes() const = 0;  // what was left out, or guessed

    // SHA-256 of all samples as they are in the files, with names, labels and preprocessing: tells
    // whether work can go on with this data. Reads all of them, the first time.
    virtual std::string hash() const = 0;
};

// Finds the samples and reads the first. Data that is not arrays needs a model with one input that
// has no default. In .npz and .npy, an array with the name of an input is that input, its first
// dimension that of the samples; `labels`, `label`, `y` or `targets` are labels; a single other
// array is for a single input. Throws Error(usage) on options that do not go together, Error(input)
// on data that cannot be read or does not fit, all with the next thing to try.
std::unique_ptr<Dataset> open_data(const DataOptions& options, const Graph& graph);

// Declares --data, --data-kind, --labels, --split, --prep, --offset and --limit, the same in every
// tool that reads data; `chosen_data` makes options of what was given.
struct DataArguments {
    std::string path;
    std::string kind;
    std::string labels;
    std::string split;
    std::vector<std::string> preprocess;
    std::int64_t offset = 0;
    std::int64_t limit = 0;  // 0: all
};
void declare_data_options(Args& args, DataArguments& arguments);
DataOptions chosen_data(const DataArguments& arguments);  // throws Error(usage)

}  // namespace trocar
#pragma GCC visibility pop
