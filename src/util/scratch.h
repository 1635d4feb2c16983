#pragma once

#include <filesystem>

namespace trocar {

// A new folder for files that live for a moment; it goes with the object, and all that is in it.
class ScratchFolder {
public:
    // Throws Error(input) when no folder can be made in `parent`.
    explicit ScratchFolder(const std::filesystem::path& parent);
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder();

    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace trocar
