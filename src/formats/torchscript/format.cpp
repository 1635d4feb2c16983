#include "trocar/format.h"

#include "formats/torchscript/reader.h"

namespace trocar {

extern const Format torchscript_format;

const Format torchscript_format{
    .name = "torchscript",
    .summary = "Modules of torch.jit",
    .suffixes = ".pt .jit .ts .ptl",
    .dialect = "aten",
    .matches = torchscript::matches,
    .read = torchscript::read_file,
};

}  // namespace trocar
