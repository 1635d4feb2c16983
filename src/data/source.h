#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/picture.h"
#include "trocar/data.h"
#include "util/sha256.h"

namespace trocar::data {

// A sample as its file has it: a picture, or tensors without a batch dimension; a tensor without
// name is for the only input.
using RawSample = std::variant<Picture, std::vector<NamedValue>>;

// What one kind of data is made of. Any number of threads may read.
class Source {
public:
    virtual ~Source() = default;
    virtual std::size_t size() const = 0;
    virtual RawSample read(std::size_t index) const = 0;
    virtual std::optional<std::int64_t> label(std::size_t index) const = 0;
    virtual std::string name(std::size_t index) const = 0;
    // Adds what `read` depends on.
    virtual void digest(std::size_t index, Sha256& hash) const = 0;

    std::string noun;  // of one sample: "picture"
    std::vector<std::string> class_names;
    std::vector<std::string> notes;
};

// Each throws Error(input) on data that cannot be read, Error(usage) on options that do not fit.
std::unique_ptr<Source> open_images(const DataOptions& options);
// `required`: the inputs without which the model cannot run.
std::unique_ptr<Source> open_arrays(const DataOptions& options,
                                    const std::vector<std::string>& input_names,
                                    const std::vector<std::string>& required);
std::unique_ptr<Source> open_idx(const DataOptions& options);
std::unique_ptr<Source> open_cifar(const DataOptions& options, bool hundred);
std::unique_ptr<Source> open_events(const DataOptions& options);

}  // namespace trocar::data
