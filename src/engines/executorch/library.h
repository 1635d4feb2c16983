#pragma once

#include <memory>
#include <string>

#include "engines/executorch/bridge/bridge.h"

namespace trocar::executorch {

// ExecuTorch as loaded into this process, with its kernels.
class Library {
public:
    // Throws Error(engine). A process has one: another path is refused when one was loaded.
    static std::shared_ptr<Library> load(const std::string& path, const std::string& version);

    const Bridge& bridge() const { return *bridge_; }
    const std::string& path() const { return path_; }
    const std::string& version() const { return version_; }
    // How many threads kernels use from now on; for the whole process.
    void use_threads(int count);

private:
    Library(std::string path, std::string version, const Bridge* bridge)
        : path_(std::move(path)), version_(std::move(version)), bridge_(bridge) {}
    std::string path_;
    std::string version_;
    const Bridge* bridge_;
    int threads_ = -1;
};

}  // namespace trocar::executorch
