#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace trocar {

// Shared libraries as files on disk: finding those of an engine, and telling before the loader sees
// one whether it can be loaded.

// A library as found on disk.
struct LibraryFile {
    std::string path;     // canonical
    std::string version;  // from the file's name; empty where the name does not tell
};

// Collects the libraries named `stem`*, each file once.
class LibrarySearch {
public:
    // `version_in` tells the version from a file's name: "" where it does not.
    LibrarySearch(std::string stem, std::string (*version_in)(const std::filesystem::path&))
        : stem_(std::move(stem)), version_in_(version_in) {}

    void add_file(const std::filesystem::path& file);
    // Files that match FOLDER/PATTERN/STEM*, all patterns together, the newest first.
    void add_folder(const std::string& folder, const std::vector<std::string>& patterns);
    // The folders of the dynamic loader's configuration, and the usual ones.
    void add_system();

    std::vector<LibraryFile> take() { return std::move(found_); }

private:
    std::string stem_;
    std::string (*version_in_)(const std::filesystem::path&);
    std::set<std::filesystem::path> seen_;
    std::vector<LibraryFile> found_;
};

// Throws Error(engine) with `hint` when the file is no complete shared library of this machine's
// architecture. Reads headers only.
void check_library_file(const std::filesystem::path& path, const std::string& hint);

// The version of a Python package, from the notes of its wheel (PACKAGE-VERSION.dist-info) in the
// folder of packages; empty: there are none.
std::string wheel_version(const std::filesystem::path& packages, std::string_view package);

// Is version `a` ("1.9.0") older than `b` ("1.31.1")? Compared number by number.
bool older_version(const std::string& a, const std::string& b);

}  // namespace trocar
