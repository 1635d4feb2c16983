#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engines/onnxruntime/ort_api.h"
#include "trocar/engine.h"

namespace trocar::ort {

// A libonnxruntime loaded into this process. Loaded once per file and kept for the life of the
// process. Safe to use from several threads.
class Library {
public:
    // Throws Error(engine) when the file is no library of this machine, is too old, or does not
    // load.
    static std::shared_ptr<Library> load(const std::string& path);

    const Api& api() const { return api_; }
    const std::string& path() const { return path_; }        // canonical
    const std::string& version() const { return version_; }  // "1.31.1"
    std::vector<std::string> providers() const;              // "CPUExecutionProvider"…

    // Turns a status that is not nullptr into Error(engine): "ONNX Runtime could not DO: its
    // message".
    void check(Status* status, std::string_view what) const;

private:
    friend class Environment;
    Library(std::string path, std::string version, Api api);

    std::string path_;
    std::string version_;
    Api api_;

    std::mutex mutex_;
    std::weak_ptr<class Environment> environment_;  // protected by mutex_
};

// Where the messages of an engine go. Shared by the engine and all that it made.
struct LogTarget {
    Log log;
    Severity from = Severity::warning;
};
void log_message(void* target, Severity severity, const char* category, const char* id,
                 const char* location,
                 const char* message);  // a LogFunction; `target`: a LogTarget

// ONNX Runtime's environment: one per library and process at a time, with one thread pool for all
// programs or none. Programs and values share it; it ends with the last of them.
class Environment {
public:
    // The environment with a pool of `threads`, or for 1 any environment (a program with one
    // thread uses no pool). Throws Error(engine) when programs or values hold one with another
    // pool.
    static std::shared_ptr<Environment> acquire(const std::shared_ptr<Library>& library,
                                                int threads, const std::shared_ptr<LogTarget>& log);
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment();

    // Throws Error(engine) as `acquire` does: may a program with `threads` be made with this one?
    void check_use(int threads) const;

    const Library& library() const { return *library_; }
    const Api& api() const { return library_->api(); }
    const Env* get() const { return env_; }
    int threads() const { return threads_; }
    const MemoryInfo* host() const { return host_; }
    Allocator* allocator() const { return allocator_; }  // of host memory
    // Bytes in use in the arena that programs of parts share; `session`: one of them. Nothing where
    // the version does not tell.
    std::optional<std::uint64_t> arena_in_use(const Session* session) const;
    std::optional<std::uint64_t> arena_in_use() const;  // 0 before the first such session

private:
    Environment(std::shared_ptr<Library> library, int threads, std::shared_ptr<LogTarget> log);

    std::shared_ptr<Library> library_;
    std::shared_ptr<LogTarget> log_;  // messages that belong to no session
    int threads_;
    pid_t process_;  // that has the threads
    Env* env_ = nullptr;
    MemoryInfo* host_ = nullptr;
    Allocator* allocator_ = nullptr;  // the library's own
    mutable std::mutex arena_mutex_;
    mutable Allocator* arena_ = nullptr;  // protected by arena_mutex_
};

// What is informative in an engine's message, on one line: without source locations, signatures and
// stack.
std::string trim_message(std::string_view message);

}  // namespace trocar::ort
