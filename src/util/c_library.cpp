#include "util/c_library.h"

#include <dlfcn.h>

namespace trocar::c_library {

void* open_library(const std::string& path, const RefuseLibrary& refuse) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const reason = ::dlerror();
        refuse(std::string("cannot be loaded: ") + (reason != nullptr ? reason : "unknown reason"));
    }
    return library;
}

void* find_function(void* library, const char* name) {
    return ::dlsym(library, name);
}

void close_library(void* library) {
    ::dlclose(library);
}

}  // namespace trocar::c_library
