#include "trocar/format.h"

#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"

namespace trocar {

extern const Format tflite_format;

const Format tflite_format{
    .name = "tflite",
    .summary = "TensorFlow Lite models",
    .suffixes = ".tflite",
    .dialect = "tflite",
    .matches = tflite::matches,
    .read = tflite::read_file,
    .write = tflite::write_file,
    .encode = tflite::encode,
};

}  // namespace trocar
