#include "trocar/format.h"

#include "formats/onnx/matches.h"
#include "formats/onnx/reader.h"
#include "formats/onnx/values.h"
#include "formats/onnx/writer.h"

namespace trocar {

extern const Format onnx_format;

const Format onnx_format{
    .name = "onnx",
    .summary = "ONNX models; tensors, sequences and maps in ONNX's .pb files",
    .suffixes = ".onnx .pb",
    .dialect = "onnx",
    .matches = onnx::matches,
    .read = onnx::read_file,
    .write = onnx::write_file,
    .encode = onnx::encode,
    .read_values = onnx::read_values,
    .write_value = onnx::write_value,
    .holds = onnx::holds,
};

}  // namespace trocar
