#include "engines/onnxruntime/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>

#include "engines/onnxruntime/find.h"
#include "trocar/error.h"

namespace trocar::ort {

namespace {

constexpr const char* get_hint =
    "`pip install onnxruntime` gives a current one; --engine onnxruntime:PATH names another";

// The version of the function table to ask for: that of 1.31.1 is 31. A library after 1.x is asked
// for the oldest that will do. Asking for one that is not there would write to stderr: 0, do not
// ask.
std::uint32_t table_version(const std::string& version) {
    if (older_version(version, engine_library.oldest)) {
        return 0;
    }
    if (!version.starts_with("1.")) {
        return base_version;
    }
    std::uint32_t minor = 0;
    std::from_chars(version.data() + 2, version.data() + version.size(), minor);
    return minor;
}

// What a library throws while it is asked for its API becomes an Error. (What it throws while it is
// loaded ends the process, before anyone could catch it.)
const ApiBase* ask_base(const std::string& path, const ApiBase* (*entry)()) {
    try {
        return entry();
    } catch (const std::exception& e) {
        throw Error(Fault::engine,
                    fmt::format("'{}' failed while it was opened: {}", path, e.what()), get_hint);
    } catch (...) {
        throw Error(Fault::engine, fmt::format("'{}' failed while it was opened", path), get_hint);
    }
}

const ApiBase* open_base(const std::string& path) {
    check_elf(path);
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* reason = ::dlerror();
        throw Error(Fault::engine,
                    fmt::format("'{}' cannot be loaded: {}", path,
                                reason != nullptr ? reason : "unknown reason"),
                    get_hint);
    }
    auto* entry = reinterpret_cast<const ApiBase* (*)()>(::dlsym(handle, "OrtGetApiBase"));
    const auto* base = entry != nullptr ? ask_base(path, entry) : nullptr;
    if (base == nullptr) {
        ::dlclose(handle);
        throw Error(
            Fault::engine,
            entry == nullptr
                ? fmt::format("'{}' is not ONNX Runtime: it has no function OrtGetApiBase", path)
                : fmt::format("'{}' has no C API", path),
            get_hint);
    }
    return base;
}

LogLevel level_of(Severity severity) {
    switch (severity) {
        case Severity::verbose:
            return LogLevel::debug;
        case Severity::info:
            return LogLevel::info;
        case Severity::warning:
            return LogLevel::warning;
        default:
            return LogLevel::error;
    }
}

// Index one past a function signature "void f(int, int) const [with T = float]" at the start of
// `text`.
std::size_t end_of_signature(std::string_view text) {
    auto at = text.find('(');
    while (at != std::string_view::npos) {
        int depth = 0;
        for (; at < text.size(); ++at) {
            depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
            if (depth == 0) {
                break;
            }
        }
        if (at >= text.size()) {
            return 0;
        }
        ++at;
        const auto rest = text.substr(at);
        if (rest.starts_with(">") || rest.starts_with("::") || rest.starts_with("(")) {
            at = text.find('(', at);  // operator() of a lambda, and the like
            continue;
        }
        for (const std::string_view qualifier : {" const", " noexcept"}) {
            if (text.substr(at).starts_with(qualifier)) {
                at += qualifier.size();
            }
        }
        if (text.substr(at).starts_with(" [with ")) {
            const auto close = text.find(']', at);
            at = close == std::string_view::npos ? at : close + 1;
        }
        return at;
    }
    return 0;
}

// Removes "/src/file.cc:123 signature" wherever it stands.
std::string without_locations(std::string text) {
    for (std::size_t from = 0; from < text.size();) {
        std::size_t found = std::string::npos;
        for (const std::string_view suffix : {".cc:", ".h:", ".cpp:", ".hpp:", ".cu:", ".inc:"}) {
            const auto at = text.find(suffix, from);
            if (at < found && at + suffix.size() < text.size() &&
                std::isdigit(static_cast<unsigned char>(text[at + suffix.size()])) != 0) {
                found = at;
            }
        }
        if (found == std::string::npos) {
            break;
        }
        auto start = text.find_last_of(" \n'\"", found);
        start = start == std::string::npos ? 0 : start + 1;
        auto end = text.find(':', found) + 1;
        while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
            ++end;
        }
        end += end_of_signature(std::string_view(text).substr(end));
        while (end < text.size() && (text[end] == ' ' || text[end] == ':')) {
            ++end;
        }
        text.erase(start, end - start);
        from = start;
    }
    return text;
}

// "Non-zero status code returned while running Add node. Name:'sum' Status Message: no memory" →
// "Add 'sum': no memory".
std::string with_op_first(std::string text) {
    constexpr std::string_view before = "Non-zero status code returned while running ";
    constexpr std::string_view between = " node. Name:'";
    constexpr std::string_view after = "' Status Message: ";
    for (std::size_t start = 0; (start = text.find(before, start)) != std::string::npos;) {
        const auto type = start + before.size();
        const auto type_end = text.find(between, type);
        const auto name = type_end + between.size();
        const auto name_end =
            type_end == std::string::npos ? std::string::npos : text.find(after, name);
        if (name_end == std::string::npos) {
            break;
        }
        auto op = text.substr(type, type_end - type);
        if (name_end > name) {
            op += fmt::format(" '{}'", text.substr(name, name_end - name));
        }
        op += ": ";
        text.replace(start, name_end + after.size() - start, op);
        start += op.size();
    }
    return text;
}

}  // namespace

std::string trim_message(std::string_view message) {
    if (const auto stack = message.find("\nStacktrace:"); stack != std::string_view::npos) {
        message = message.substr(0, stack);
    }
    auto text = without_locations(with_op_first(std::string(message)));
    // "condition was false. reason": the reason is what tells.
    constexpr std::string_view was_false = " was false. ";
    if (const auto at = text.find(was_false);
        at != std::string::npos && at + was_false.size() < text.size()) {
        auto start = text.rfind(": ", at);
        start = start == std::string::npos ? 0 : start + 2;
        text.erase(start, at + was_false.size() - start);
    }
    std::string line;
    for (const char c : text) {
        const bool space = static_cast<unsigned char>(c) <= ' ';
        if (!space) {
            line += c;
        } else if (!line.empty() && line.back() != ' ') {
            line += ' ';
        }
    }
    while (!line.empty() && (line.back() == ' ' || line.back() == '.')) {
        line.pop_back();
    }
    return line.empty() ? "it gave no reason" : line;
}

void log_message(void* target, Severity severity, const char* category, const char* /*id*/,
                 const char* /*location*/, const char* message) {
    const auto* to = static_cast<const LogTarget*>(target);
    if (!to->log || message == nullptr) {
        return;
    }
    try {
        to->log(level_of(severity),
                fmt::format("ONNX Runtime: {}{}",
                            category != nullptr && std::string_view(category) != "onnxruntime"
                                ? fmt::format("[{}] ", category)
                                : "",
                            trim_message(message)));
    } catch (...) {
        // The caller is C code of the engine: nothing may pass through it.
        return;
    }
}

Library::Library(std::string path, std::string version, Api api)
    : path_(std::move(path)), version_(std::move(version)), api_(api) {}

std::shared_ptr<Library> Library::load(const std::string& path) {
    // Never destroyed: values may outlive static objects.
    static auto& mutex = *new std::mutex;
    static auto& loaded = *new std::map<std::string, std::shared_ptr<Library>>;

    std::error_code failure;
    const auto canonical = std::filesystem::canonical(path, failure).string();
    if (failure) {
        throw Error(Fault::engine, fmt::format("there is no ONNX Runtime at '{}'", path), get_hint);
    }
    const std::lock_guard lock(mutex);
    auto& library = loaded[canonical];
    if (library != nullptr) {
        return library;
    }
    const auto* base = open_base(canonical);
    const std::string version = base->version();
    const auto number = table_version(version);
    const auto* table = number == 0 ? nullptr : base->table(number);
    if (table == nullptr) {
        throw Error(Fault::engine,
                    number == 0
                        ? fmt::format("ONNX Runtime {} at '{}' is too old: {} or newer is needed",
                                      version, canonical, engine_library.oldest)
                        : fmt::format("ONNX Runtime {} at '{}' has no C API of version {}", version,
                                      canonical, number),
                    get_hint);
    }
    library.reset(new Library(canonical, version, Api(table, number)));
    return library;
}

void Library::check(Status* status, std::string_view what) const {
    if (status == nullptr) {
        return;
    }
    const std::string message = trim_message(api_(get_error_message, status));
    api_(release_status, status);
    throw Error(Fault::engine, fmt::format("ONNX Runtime could not {}: {}", what, message));
}

std::vector<std::string> Library::providers() const {
    char** names = nullptr;
    int count = 0;
    check(api_(get_available_providers, &names, &count), "list its providers");
    std::vector<std::string> result(names, names + count);
    check(api_(release_available_providers, names, count), "list its providers");
    return result;
}

Environment::Environment(std::shared_ptr<Library> library, int threads,
                         std::shared_ptr<LogTarget> log)
    : library_(std::move(library)), log_(std::move(log)), threads_(threads), process_(::getpid()) {
    const auto& call = library_->api();
    constexpr const char* starting = "start";
    if (threads_ > 1) {
        ThreadingOptions* pools = nullptr;
        library_->check(call(create_threading_options, &pools), starting);
        const auto release = [&call](ThreadingOptions* p) { call(release_threading_options, p); };
        const std::unique_ptr<ThreadingOptions, decltype(release)> owner(pools, release);
        library_->check(call(set_global_intra_op_threads, pools, threads_), starting);
        library_->check(call(set_global_inter_op_threads, pools, 1), starting);
        library_->check(call(create_env_with_pools, &log_message, log_.get(), log_->from, "trocar",
                             pools, &env_),
                        starting);
    } else {
        library_->check(call(create_env, &log_message, log_.get(), log_->from, "trocar", &env_),
                        starting);
    }
    try {
        library_->check(call(disable_telemetry, env_), starting);
        library_->check(
            call(create_cpu_memory_info, AllocatorKind::arena, MemoryKind::normal, &host_),
            starting);
        library_->check(call(get_default_allocator, &allocator_), starting);
        library_->check(call(register_allocator, env_, host_, nullptr), starting);
    } catch (...) {
        if (host_ != nullptr) {
            call(release_memory_info, host_);
        }
        call(release_env, env_);
        throw;
    }
}

std::optional<std::uint64_t> Environment::arena_in_use(const Session* session) const {
    {
        const std::lock_guard lock(arena_mutex_);
        if (arena_ == nullptr) {
            library_->check(api()(create_allocator, session, host_, &arena_), "count its memory");
        }
    }
    return arena_in_use();
}

std::optional<std::uint64_t> Environment::arena_in_use() const {
    if (!api().has(get_allocator_stats)) {
        return std::nullopt;
    }
    const std::lock_guard lock(arena_mutex_);
    if (arena_ == nullptr) {
        return 0;
    }
    KeyValuePairs* stats = nullptr;
    library_->check(api()(get_allocator_stats, arena_, &stats), "count its memory");
    std::optional<std::uint64_t> in_use;
    if (const char* text = api()(get_pair, stats, "InUse"); text != nullptr) {
        std::from_chars(text, text + std::strlen(text), in_use.emplace(0));
    }
    api()(release_pairs, stats);
    return in_use;
}

Environment::~Environment() {
    if (arena_ != nullptr) {
        api()(release_allocator, arena_);
    }
    api()(release_memory_info, host_);
    api()(release_env, env_);
}

void Environment::check_use(int threads) const {
    if (threads == 1) {
        return;
    }
    if (threads != threads_) {
        throw Error(
            Fault::engine,
            fmt::format(
                "ONNX Runtime {} already runs with {} thread{} in this process and cannot run "
                "with {} too",
                library_->version(), threads_, threads_ == 1 ? "" : "s", threads),
            "end the engines, programs and values with the other number first, or use another "
            "process");
    }
    if (process_ != ::getpid()) {
        throw Error(Fault::engine,
                    fmt::format("ONNX Runtime {} was started before this process was forked: its "
                                "threads are not here",
                                library_->version()),
                    "compile nothing before the fork, or use 1 thread");
    }
}

std::shared_ptr<Environment> Environment::acquire(const std::shared_ptr<Library>& library,
                                                  int threads,
                                                  const std::shared_ptr<LogTarget>& log) {
    const std::lock_guard lock(library->mutex_);
    if (auto existing = library->environment_.lock()) {
        existing->check_use(threads);
        return existing;
    }
    const std::shared_ptr<Environment> made(new Environment(library, threads, log));
    library->environment_ = made;
    return made;
}

}  // namespace trocar::ort
