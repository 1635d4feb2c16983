#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engines/openvino/ov_api.h"
#include "trocar/engine.h"
#include "trocar/error.h"

namespace trocar::ov {

// A libopenvino_c loaded into this process, with its core. Loaded once per file and kept for the
// life of the process. Safe to use from several threads.
class Library {
public:
    // Throws Error(engine) when the file is no library of this machine, is too old, or does not
    // load.
    static std::shared_ptr<Library> load(const std::string& path);

    const Api& api() const { return api_; }
    const std::string& path() const { return path_; }        // canonical
    const std::string& version() const { return version_; }  // "2026.4.1"

    // The core, made when it is first asked for, so that a process can be forked off before. Throws
    // Error(engine) when it was made before this process was forked.
    const Core* core();
    std::vector<std::string> devices();  // "CPU", "GPU"…

    // Turns a status that is not ok into Error(engine): "OpenVINO could not DO: its message".
    void check(Status status, std::string_view what) const;
    Error error(Status status, std::string_view what) const;
    std::string message(Status status) const;  // as it is, of many lines

private:
    Library(std::string path, Api api);

    std::string path_;
    std::string version_;
    Api api_;

    std::mutex mutex_;
    Core* core_ = nullptr;  // protected by mutex_, never freed: what was made with it may live on
    pid_t process_ = 0;     // that made the core
};

}  // namespace trocar::ov
