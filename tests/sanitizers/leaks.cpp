// Every program of the sanitizer build has this. The leak checker of clang 14 can crash in a
// process with threads of OpenVINO, PyTorch, or ExecuTorch. It is off there, whichever test loaded
// the engine.
#include <link.h>

#include <string_view>

// The leak checker calls this function, under this name, before it looks for leaks.
extern "C" int
__lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
    const auto has_threads = [](dl_phdr_info* library, std::size_t, void*) -> int {
        const std::string_view path = library->dlpi_name;
        const auto name = path.substr(path.rfind('/') + 1);
        return name.starts_with("libopenvino") || name.starts_with("libtorch") ||
                       name.starts_with("libexecutorch")
                   ? 1
                   : 0;
    };
    return dl_iterate_phdr(has_threads, nullptr);
}
