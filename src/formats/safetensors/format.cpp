#include "trocar/format.h"

#include "formats/safetensors/safetensors.h"

namespace trocar {

extern const Format safetensors_format;

const Format safetensors_format{
    .name = "safetensors",
    .summary = "safetensors: tensors under their names",
    .suffixes = ".safetensors",
    .dialect = "",
    .read_values = safetensors::read_values,
    .write_value = safetensors::write_value,
    .holds = safetensors::holds,
    .create_archive = safetensors::create_archive,
    .archive_suffix = ".safetensors",
    .write_values = safetensors::write_values,
};

}  // namespace trocar
