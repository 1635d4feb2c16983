#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "engines/litert/litert_api.h"
#include "trocar/engine.h"
#include "trocar/error.h"

namespace trocar::litert {

// A libLiteRt.so loaded into this process. Loaded once per file and kept for the life of the
// process. Safe to use from several threads.
class Library {
public:
    // Throws Error(engine) when the file is no library of this machine, of another version, or does
    // not load.
    static std::shared_ptr<Library> load(const std::string& path, const std::string& version);

    const Api& api() const { return api_; }
    const std::string& path() const { return path_; }
    const std::string& version() const { return version_; }

    // Made when it is first asked for, so that a process can be forked off before. Throws
    // Error(engine) when it was made before this process was forked.
    Environment* environment();

    // Turns a status that is not ok into Error(engine): "LiteRT could not DO: why".
    void check(Status status, std::string_view what) const;

private:
    Library(std::string path, std::string version, Api api)
        : path_(std::move(path)), version_(std::move(version)), api_(api) {}

    std::string path_;
    std::string version_;
    Api api_;
    std::mutex mutex_;
    Environment* environment_ = nullptr;  // protected by mutex_, never freed
    pid_t process_ = 0;                   // that made it
};

std::string status_text(Status status);

}  // namespace trocar::litert
