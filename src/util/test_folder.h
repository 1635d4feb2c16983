#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace trocar {

// A folder of its own for each test, which goes with it: tests run at the same time.
class TestFolder {
public:
    TestFolder() {
        auto name =
            (std::filesystem::canonical(std::filesystem::temp_directory_path()) / "trocar-XXXXXX")
                .string();
        path_ = ::mkdtemp(name.data());
    }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;
    ~TestFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

}  // namespace trocar
