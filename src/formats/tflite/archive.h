#pragma once

#include <cstdint>
#include <string>

#include "trocar/tensor.h"

// Models may carry a ZIP archive behind them, with labels and vocabularies.
namespace trocar::tflite {

// The archive at the end of a file; empty: there is none.
Bytes appended_archive(Bytes file);

// The same archive for a file in which it begins at `begin`, where it began at `was` before.
std::string moved_archive(Bytes archive, std::uint64_t was, std::uint64_t begin);

}  // namespace trocar::tflite
