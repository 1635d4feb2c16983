#include "util/scratch.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "trocar/error.h"

namespace trocar {

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
    auto name = (parent / "trocar-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw Error(
            Fault::input,
            fmt::format("no folder can be made in '{}': {}", parent.string(), std::strerror(errno)),
            "TMPDIR names a folder for temporary files");
    }
    path_ = name;
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace trocar
