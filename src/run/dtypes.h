#pragma once

#include <span>

#include "run/sites.h"
#include "trocar/model.h"

namespace trocar {

// Element types that a file does not declare, from what ops of the ONNX dialect do with those of
// their inputs. No shapes. A type that an engine knows better is for the engine to say.
class DTypes {
public:
    explicit DTypes(const Model& model) : model_(model) {}

    // Of a tensor of the graph at the end of `path`; undefined where the rules do not tell.
    DType of(std::span<const BodyStep> path, TensorId tensor);

private:
    DType find(std::span<const BodyStep> path, TensorId tensor, int depth);
    DType written(std::span<const BodyStep> path, const Op& op, std::size_t slot, int depth);
    DType carried(std::span<const BodyStep> path, TensorId tensor, int depth);

    const Model& model_;
};

}  // namespace trocar
