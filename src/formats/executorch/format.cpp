#include "trocar/format.h"

#include "formats/executorch/reader.h"
#include "formats/executorch/writer.h"

namespace trocar {

extern const Format executorch_format;

const Format executorch_format{
    .name = "executorch",
    .summary = "Programs of ExecuTorch",
    .suffixes = ".pte",
    .dialect = "aten",
    .matches = executorch::matches,
    .read = executorch::read_file,
    .write = executorch::write_file,
    .encode = executorch::encode,
};

}  // namespace trocar
