#include "engines/onnxruntime/deployed.h"

#include "trocar/model.h"
#include "util/scratch.h"

namespace trocar::ort {

Model deployed_model(const Compiler& compiler, const Model& model) {
    const ScratchFolder folder(compiler.scratch);
    const auto path = folder.path() / "optimized.onnx";
    compile_program(compiler, model, {}, {.optimized_model = path});
    auto made = load(path, "onnx");
    made.path.clear();
    return made;
}

}  // namespace trocar::ort
