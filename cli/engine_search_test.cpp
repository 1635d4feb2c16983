#include "cli/engine_search.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "util/files.h"
#include "util/test_folder.h"

namespace trocar::cli {
namespace {

namespace fs = std::filesystem;

class EngineFolders : public testing::Test {
protected:
    fs::path folder(const std::string& path) {
        fs::create_directories(root / path);
        return root / path;
    }
    // Those inside the test's folder, relative to it.
    std::vector<std::string> found(const fs::path& executable = "/usr/bin/trocar") {
        const auto environment = [this](const char* name) {
            return variables.contains(name) ? variables[name].string() : std::string();
        };
        std::vector<std::string> inside;
        for (const auto& path : engine_folders(environment, executable, root / "project/src")) {
            const auto relative = fs::path(path).lexically_relative(root).string();
            if (!relative.starts_with("..")) {
                inside.push_back(relative);
            }
        }
        return inside;
    }
    using Paths = std::vector<std::string>;
    TestFolder scratch;
    const fs::path& root = scratch.path();
    std::map<std::string, fs::path> variables;
};

TEST_F(EngineFolders, ListedOnesComeFirst) {
    folder("a");
    write_file(folder("b") / "lib.so", "");
    variables["TROCAR_ENGINE_PATH"] = (root / "a").string() + ":" + (root / "missing/x").string() +
                                      "::" + (root / "b/lib.so").string();
    EXPECT_EQ(found(), (Paths{"a", "b"}));
}

TEST_F(EngineFolders, TheDependencyFolderOfTheSourceTreeIsKnownFromTheExecutable) {
    folder("project/.deps/onnxruntime-1.9.0");
    folder("project/.deps/onnxruntime-1.31.1");
    folder("project/.deps/python/lib/python3.11/site-packages");
    EXPECT_EQ(found(root / "project/build/release/trocar"),
              (Paths{"project/.deps/onnxruntime-1.31.1", "project/.deps/onnxruntime-1.9.0"}));
    EXPECT_EQ(found(root / "project/elsewhere/release/trocar"), Paths{});
    variables["TROCAR_DEPS"] = root / "project/.deps";
    EXPECT_EQ(found().size(), 2u);
}

TEST_F(EngineFolders, PythonEnvironmentsAreFoundWithoutStartingPython) {
    folder("venv/lib/python3.11/site-packages");
    folder("conda/lib/python3.12/site-packages");
    variables["VIRTUAL_ENV"] = root / "venv";
    variables["CONDA_PREFIX"] = root / "conda";
    EXPECT_EQ(found(), (Paths{"venv/lib/python3.11/site-packages",
                              "conda/lib/python3.12/site-packages", "conda/lib"}));
}

TEST_F(EngineFolders, ThePythonOnThePathLeadsToItsPrefix) {
    folder("py/lib/python3.11/site-packages");
    write_file(folder("py/bin") / "python3.11", "");
    fs::create_symlink("python3.11", root / "py/bin/python3");
    folder("env/lib/python3.11/site-packages");
    write_file(folder("env") / "pyvenv.cfg", "");
    fs::create_directories(root / "env/bin");
    fs::create_symlink(root / "py/bin/python3", root / "env/bin/python3");
    variables["PATH"] = root / "py/bin";
    EXPECT_EQ(found(), Paths{"py/lib/python3.11/site-packages"});
    variables["PATH"] = root / "env/bin";
    EXPECT_EQ(found(), Paths{"env/lib/python3.11/site-packages"});
}

TEST_F(EngineFolders, PyenvChoosesTheVersion) {
    for (const std::string version : {"3.9.1", "3.11.2", "3.11.10"}) {
        folder("pyenv/versions/" + version + "/lib/python3/site-packages");
    }
    write_file(folder("pyenv/shims") / "python3", "#!/bin/sh\n");
    variables["PATH"] = root / "pyenv/shims";
    EXPECT_EQ(found(), Paths{});
    write_file(root / "pyenv/version", "3.9.1\n");
    EXPECT_EQ(found(), Paths{"pyenv/versions/3.9.1/lib/python3/site-packages"});
    write_file(folder("project") / ".python-version", "3.11\n");
    EXPECT_EQ(found(), Paths{"pyenv/versions/3.11.10/lib/python3/site-packages"});
    variables["PYENV_VERSION"] = "3.11.2";
    EXPECT_EQ(found(), Paths{"pyenv/versions/3.11.2/lib/python3/site-packages"});
    variables["PYENV_VERSION"] = "system";
    EXPECT_EQ(found(), Paths{});
}

TEST(VersionLess, ComparesNumbersAsNumbers) {
    EXPECT_TRUE(version_less("ort-1.9.0", "ort-1.31.1"));
    EXPECT_FALSE(version_less("ort-1.31.1", "ort-1.9.0"));
    EXPECT_FALSE(version_less("a1", "a1"));
    EXPECT_FALSE(version_less("a01", "a1"));
    EXPECT_TRUE(version_less("a", "a1"));
    EXPECT_TRUE(version_less("a1", "b0"));
}

}  // namespace
}  // namespace trocar::cli
