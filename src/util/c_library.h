#pragma once

#include <functional>
#include <string>
#include <utility>

namespace trocar::c_library {

// A function of a shared library by its name; it can be called once `call` is filled in.
template <class Signature>
struct Function {
    const char* name;
    Signature* call = nullptr;

    template <class... Arguments>
    auto operator()(Arguments... arguments) const {
        return call(arguments...);
    }
};

// An object of the library that is released at the end.
template <class Object>
class Owned {
public:
    Owned() = default;
    explicit Owned(const Function<void(Object*)>& release) : release_(release.call) {}
    Owned(Owned&& other) noexcept
        : release_(other.release_), object_(std::exchange(other.object_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(release_, other.release_);
        std::swap(object_, other.object_);
        return *this;
    }
    ~Owned() {
        if (object_ != nullptr) {
            release_(object_);
        }
    }
    Object* get() const { return object_; }
    Object** fill() { return &object_; }  // for the function that makes it, once

private:
    void (*release_)(Object*) = nullptr;
    Object* object_ = nullptr;
};

// Says that a library cannot be used: throws.
using RefuseLibrary = std::function<void(const std::string& why)>;

// A library that is loaded for the life of the process, and the place of a function in it; nullptr:
// it has none. Calls `refuse` where it does not load.
void* open_library(const std::string& path, const RefuseLibrary& refuse);
void* find_function(void* library, const char* name);
void close_library(void* library);

// All functions of an Api, by its `each`. `lacks` says what a library without one of them is not:
// "is not LiteRT 2.3.0".
template <class Api>
Api open_api(const std::string& path, const std::string& lacks, const RefuseLibrary& refuse) {
    void* const library = open_library(path, refuse);
    Api api;
    const char* missing = nullptr;
    api.each([&](auto& function) {
        function.call =
            reinterpret_cast<decltype(function.call)>(find_function(library, function.name));
        missing = function.call == nullptr && missing == nullptr ? function.name : missing;
    });
    if (missing != nullptr) {
        close_library(library);
        refuse(lacks + ": it has no function " + missing);
    }
    return api;
}

}  // namespace trocar::c_library
