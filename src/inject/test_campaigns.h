#pragma once

#include <unistd.h>

#include <csignal>
#include <memory>
#include <span>
#include <string>

#include "trocar/engine.h"
#include "trocar/fault.h"
#include "trocar/session.h"

namespace trocar::testing {

inline const std::string digits = TROCAR_SOURCE_DIR "/models/digits.onnx";

// ONNX Runtime with one thread, opened once.
inline std::shared_ptr<Engine> engine() {
    static const auto opened = [] {
        EngineOptions options;
        options.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
        options.threads = 1;
        return open_engine(options);
    }();
    return opened;
}

// An effect that crashes or hangs on some draws, and flips a bit on the others.
inline void misbehave(DType, std::span<std::byte> tensor, std::size_t place, std::uint64_t draw) {
    if (draw % 11 == 0) {
        std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would make an exit of it
        std::raise(SIGSEGV);
    }
    while (draw % 19 == 0) {
        ::usleep(1000);
    }
    tensor[place * sizeof(float)] ^= std::byte{1};
}

}  // namespace trocar::testing
