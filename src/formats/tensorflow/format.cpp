#include "trocar/format.h"

#include "formats/tensorflow/reader.h"

namespace trocar {

extern const Format tensorflow_format;

const Format tensorflow_format{
    .name = "tensorflow",
    .summary = "TensorFlow: SavedModel folders and frozen graphs",
    .suffixes = ".pb",
    .dialect = "tf",
    .matches = tensorflow::matches,
    .read = tensorflow::read_path,
    .reads_folders = true,
};

}  // namespace trocar
