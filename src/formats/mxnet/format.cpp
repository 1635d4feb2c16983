#include "trocar/format.h"

#include "formats/mxnet/reader.h"

namespace trocar {

extern const Format mxnet_format;

const Format mxnet_format{
    .name = "mxnet",
    .summary = "MXNet symbols with their arrays",
    .suffixes = "-symbol.json .params",
    .dialect = "mxnet",
    .matches = mxnet::matches,
    .read = mxnet::read_file,
};

}  // namespace trocar
