#include "engines/litert/library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "engines/litert/find.h"

namespace trocar::litert {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw Error(Fault::engine, fmt::format("'{}' {}", path, why), install_hint);
}

Api open_functions(const std::string& path) {
    check_library_file(path, install_hint);
    return c_library::open_api<Api>(path, fmt::format("is not LiteRT {}", only_version),
                                    [&](const std::string& why) { refuse(path, why); });
}

}  // namespace

std::shared_ptr<Library> Library::load(const std::string& path, const std::string& version) {
    // Never destroyed: programs may outlive static objects.
    static auto& mutex = *new std::mutex;
    static auto& loaded = *new std::map<std::string, std::shared_ptr<Library>>;

    std::error_code failure;
    const auto canonical = std::filesystem::canonical(path, failure).string();
    if (failure) {
        throw Error(Fault::engine, fmt::format("there is no LiteRT at '{}'", path), install_hint);
    }
    if (version != only_version) {
        refuse(canonical,
               version.empty()
                   ? fmt::format("is a LiteRT whose version is not known, as the notes "
                                 "of its wheel are not beside it; only {} can be used",
                                 only_version)
                   : fmt::format("is LiteRT {}; only {} can be used", version, only_version));
    }
    const std::lock_guard lock(mutex);
    auto& library = loaded[canonical];
    if (library == nullptr) {
        library.reset(new Library(canonical, version, open_functions(canonical)));
    }
    return library;
}

Environment* Library::environment() {
    const std::lock_guard lock(mutex_);
    if (environment_ == nullptr) {
        EnvironmentOption options[2];
        options[0].tag = tag_log_severity;
        options[0].value.integer = silent;
        options[1].tag = tag_accelerators;
        options[1].value.integer = cpu_only;
        check(api_.create_environment(2, options, &environment_), "start");
        process_ = ::getpid();
    }
    if (process_ != ::getpid()) {
        throw Error(Fault::engine,
                    fmt::format("LiteRT {} was started before this process was forked: its threads "
                                "are not here",
                                version_),
                    "compile nothing before the fork");
    }
    return environment_;
}

std::string status_text(Status status) {
    switch (static_cast<int>(status)) {
        case 1:
            return "an argument is wrong";
        case 2:
            return "there is not enough memory";
        case 3:
            return "it failed while running";
        case 5:
            return "it does not support that";
        case 500:
            return "the file is broken";
        default:
            return fmt::format("status {}", static_cast<int>(status));
    }
}

void Library::check(Status status, std::string_view what) const {
    if (status != Status::ok) {
        throw Error(Fault::engine,
                    fmt::format("LiteRT could not {}: {}", what, status_text(status)));
    }
}

}  // namespace trocar::litert
