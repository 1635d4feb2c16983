#include "engines/openvino/library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "engines/openvino/find.h"
#include "engines/openvino/messages.h"

namespace trocar::ov {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw Error(Fault::engine, fmt::format("'{}' {}", path, why),
                "`pip install openvino` gives a current one; --engine openvino:PATH names another");
}

Api open_functions(const std::string& path) {
    check_library_file(path, engine_library.install_hint);
    return c_library::open_api<Api>(
        path, fmt::format("is not the C library of OpenVINO {} or newer", engine_library.oldest),
        [&](const std::string& why) { refuse(path, why); });
}

// "2026.4.1-22982-e213a147257-releases/2026/4" → "2026.4.1".
std::string version_of(const Api& api) {
    Version version;
    if (api.library_version(&version) != Status::ok || version.build == nullptr) {
        return {};
    }
    std::string text = version.build;
    api.release_version(&version);
    return text.substr(0, text.find('-'));
}

// Versions before 2025.4 number element types otherwise. A tensor's size tells.
bool numbers_types_as_declared(const Api& api) {
    constexpr std::pair<ElementType, std::size_t> sizes[]{
        {ElementType::boolean, 1}, {ElementType::bf16, 2}, {ElementType::f32, 4},
        {ElementType::f64, 8},     {ElementType::i8, 1},   {ElementType::i64, 8},
        {ElementType::u8, 1},      {ElementType::u64, 8},  {ElementType::f8e4m3, 1},
    };
    for (const auto& [type, bytes] : sizes) {
        Owned<TensorHandle> tensor(api.release_tensor);
        std::size_t size = 0;
        if (api.create_tensor(type, Dimensions{}, tensor.fill()) != Status::ok ||
            api.tensor_byte_size(tensor.get(), &size) != Status::ok || size != bytes) {
            return false;
        }
    }
    return true;
}

}  // namespace

Library::Library(std::string path, Api api)
    : path_(std::move(path)), version_(version_of(api)), api_(api) {}

std::shared_ptr<Library> Library::load(const std::string& path) {
    // Never destroyed: programs and values may outlive static objects.
    static auto& mutex = *new std::mutex;
    static auto& loaded = *new std::map<std::string, std::shared_ptr<Library>>;

    std::error_code failure;
    const auto canonical = std::filesystem::canonical(path, failure).string();
    if (failure) {
        throw Error(Fault::engine, fmt::format("there is no OpenVINO at '{}'", path),
                    engine_library.install_hint);
    }
    const std::lock_guard lock(mutex);
    auto& library = loaded[canonical];
    if (library != nullptr) {
        return library;
    }
    const std::shared_ptr<Library> made(new Library(canonical, open_functions(canonical)));
    if (older_version(made->version_, engine_library.oldest)) {
        refuse(canonical, fmt::format("is OpenVINO {}, which is too old: {} or newer is needed",
                                      made->version_, engine_library.oldest));
    }
    if (!numbers_types_as_declared(made->api_)) {
        refuse(canonical, fmt::format("is OpenVINO {}, whose C API is not the one of {}",
                                      made->version_, engine_library.oldest));
    }
    // What it would print belongs into messages of errors, which have it too.
    made->api_.set_log([](const char*) {});
    return library = made;
}

const Core* Library::core() {
    const std::lock_guard lock(mutex_);
    if (core_ == nullptr) {
        check(api_.create_core(&core_), "start");
        process_ = ::getpid();
    }
    if (process_ != ::getpid()) {
        throw Error(Fault::engine,
                    fmt::format("OpenVINO {} was started before this process was forked: its "
                                "threads are not here",
                                version_),
                    "compile nothing before the fork");
    }
    return core_;
}

std::vector<std::string> Library::devices() {
    Devices devices;
    check(api_.available_devices(core(), &devices), "list its devices");
    std::vector<std::string> names(devices.names, devices.names + devices.size);
    api_.release_devices(&devices);
    return names;
}

std::string Library::message(Status status) const {
    const char* text = api_.last_message();
    std::string message = text != nullptr ? text : "";
    if (text != nullptr) {
        api_.release_text(text);
    }
    return message.empty() ? api_.status_text(status) : message;
}

Error Library::error(Status status, std::string_view what) const {
    return {Fault::engine,
            fmt::format("OpenVINO could not {}: {}", what, trim_message(message(status)))};
}

void Library::check(Status status, std::string_view what) const {
    if (status != Status::ok) {
        throw error(status, what);
    }
}

}  // namespace trocar::ov
