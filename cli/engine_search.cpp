#include "cli/engine_search.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include "util/text.h"

namespace trocar::cli {

namespace fs = std::filesystem;

namespace {

bool is_folder(const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

// The folders right in `parent` whose names begin with `prefix`, highest version first.
std::vector<fs::path> folders_in(const fs::path& parent, std::string_view prefix) {
    std::vector<fs::path> found;
    std::error_code failure;
    for (fs::directory_iterator at(parent, failure), end; !failure && at != end;
         at.increment(failure)) {
        if (at->path().filename().string().starts_with(prefix) && is_folder(at->path())) {
            found.push_back(at->path());
        }
    }
    std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
        return version_less(b.filename().string(), a.filename().string());
    });
    return found;
}

// "onnxruntime-1.31.1"
bool has_version(const std::string& name) {
    const auto dash = name.rfind('-');
    return dash != std::string::npos && dash + 1 < name.size() && name[dash + 1] >= '0' &&
           name[dash + 1] <= '9';
}

std::string first_word(const fs::path& file) {
    std::ifstream in(file);
    std::string word;
    in >> word;
    return word;
}

class Search {
public:
    Search(const Environment& environment, fs::path working_folder)
        : environment_(environment), working_folder_(std::move(working_folder)) {}

    void add(const fs::path& path) {
        std::error_code failure;
        const auto real = fs::canonical(path, failure);
        if (!failure && std::find(seen_.begin(), seen_.end(), real) == seen_.end()) {
            seen_.push_back(real);
            found_.push_back(path.lexically_normal().string());
        }
    }

    void add_prefix(const fs::path& prefix) {
        if (prefix.empty()) {
            return;
        }
        for (const auto* lib : {"lib", "lib64", "local/lib"}) {
            for (const auto& version : folders_in(prefix / lib, "python3")) {
                add(version / "site-packages");
                add(version / "dist-packages");
            }
        }
    }

    void add_listed() {
        for (const auto& entry : split(environment_("TROCAR_ENGINE_PATH"), ':')) {
            if (!entry.empty()) {
                add(is_folder(entry) ? fs::path(entry) : fs::path(entry).parent_path());
            }
        }
    }

    void add_dependencies(const fs::path& executable) {
        fs::path deps = environment_("TROCAR_DEPS");
        const auto build = executable.parent_path().parent_path();
        if (deps.empty() && build.filename() == "build") {
            deps = build.parent_path() / ".deps";
        }
        if (!deps.empty()) {
            for (const auto& folder : folders_in(deps, "")) {
                if (has_version(folder.filename().string())) {
                    add(folder);
                }
            }
        }
    }

    // The python3 that a shell would start.
    void add_python_on_path() {
        for (const auto& folder : split(environment_("PATH"), ':')) {
            const auto python = fs::path(folder) / "python3";
            std::error_code failure;
            if (folder.empty() || !fs::exists(python, failure)) {
                continue;
            }
            const fs::path bin = folder;
            if (bin.filename() == "shims") {
                add_pyenv(bin.parent_path());
            } else if (fs::exists(bin.parent_path() / "pyvenv.cfg", failure)) {
                add_prefix(bin.parent_path());
            } else {
                add_prefix(fs::canonical(python, failure).parent_path().parent_path());
            }
            return;
        }
    }

    const std::vector<std::string>& found() const { return found_; }

private:
    // pyenv chooses: PYENV_VERSION, the nearest .python-version, its own `version` file.
    void add_pyenv(const fs::path& root) {
        auto version = split(environment_("PYENV_VERSION"), ':').front();
        for (auto folder = working_folder_; version.empty(); folder = folder.parent_path()) {
            version = first_word(folder / ".python-version");
            if (!folder.has_relative_path()) {
                break;
            }
        }
        if (version.empty()) {
            version = first_word(root / "version");
        }
        if (version.empty() || version == "system") {
            return;
        }
        if (is_folder(root / "versions" / version)) {
            add_prefix(root / "versions" / version);
        } else if (const auto like = folders_in(root / "versions", version + "."); !like.empty()) {
            add_prefix(like.front());
        }
    }

    const Environment& environment_;
    fs::path working_folder_;
    std::vector<fs::path> seen_;
    std::vector<std::string> found_;
};

}  // namespace

std::string process_environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool version_less(const std::string& a, const std::string& b) {
    std::size_t i = 0;
    std::size_t j = 0;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    while (i < a.size() && j < b.size()) {
        if (is_digit(a[i]) && is_digit(b[j])) {
            const auto run = [&](const std::string& text, std::size_t& at) {
                const auto begin = std::min(text.find_first_not_of('0', at), text.size());
                auto end = begin;
                while (end < text.size() && is_digit(text[end])) {
                    ++end;
                }
                at = end;
                return text.substr(begin, end - begin);
            };
            const auto left = run(a, i);
            const auto right = run(b, j);
            if (left.size() != right.size()) {
                return left.size() < right.size();
            }
            if (left != right) {
                return left < right;
            }
        } else if (a[i] != b[j]) {
            return a[i] < b[j];
        } else {
            ++i;
            ++j;
        }
    }
    return a.size() - i < b.size() - j;
}

std::vector<std::string> engine_folders(const Environment& environment, const fs::path& executable,
                                        const fs::path& working_folder) {
    Search search(environment, working_folder);
    search.add_listed();
    search.add_dependencies(executable);
    search.add_prefix(environment("VIRTUAL_ENV"));
    const fs::path conda = environment("CONDA_PREFIX");
    if (!conda.empty()) {
        search.add_prefix(conda);
        search.add(conda / "lib");
    }
    search.add_python_on_path();
    const fs::path home = environment("HOME");
    if (!home.empty()) {
        search.add_prefix(home / ".local");
    }
    search.add_prefix("/usr/local");
    search.add_prefix("/usr");
    search.add("/usr/lib/python3/dist-packages");
    return search.found();
}

}  // namespace trocar::cli
