#include "trocar/format.h"

#include "formats/pt2/reader.h"

namespace trocar {

extern const Format pt2_format;

const Format pt2_format{
    .name = "pt2",
    .summary = "Programs of torch.export",
    .suffixes = ".pt2",
    .dialect = "aten",
    .matches = pt2::matches,
    .read = pt2::read_file,
};

}  // namespace trocar
