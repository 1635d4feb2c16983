#include "engines/onnxruntime/find.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "engines/onnxruntime/library.h"
#include "engines/onnxruntime/settings.h"
#include "trocar/error.h"
#include "util/test_folder.h"

namespace trocar::ort {
namespace {

namespace fs = std::filesystem;

class FindLibraries : public testing::Test {
protected:
    FindLibraries() { fs::create_directories(root_); }
    ~FindLibraries() override { fs::remove_all(root_); }

    // An empty file, with the folders above it.
    void touch(const std::string& path) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path).put('\0');
    }
    // Where the libraries of `options` lie below the root, those of the system left out.
    std::vector<std::string> found(const EngineOptions& options) {
        std::vector<std::string> paths;
        for (const auto& library : find_libraries(engine_library, options)) {
            if (library.path.starts_with(root_.string())) {
                paths.push_back(fs::relative(library.path, root_).string());
            }
        }
        return paths;
    }

    TestFolder scratch_;
    const fs::path& root_ = scratch_.path();
};

using Paths = std::vector<std::string>;

TEST_F(FindLibraries, TakesAnyFileThatIsNamed) {
    touch("my.so");
    EngineOptions options;
    options.path = (root_ / "my.so").string();
    EXPECT_EQ(found(options), Paths{"my.so"});
}

TEST_F(FindLibraries, LooksBelowAFolderForTheNewest) {
    touch("onnxruntime-1.9.0/onnxruntime/capi/libonnxruntime.so.1.9.0");
    touch("onnxruntime-1.31.1/onnxruntime/capi/libonnxruntime.so.1.31.1");
    touch("onnxruntime-1.31.1/onnxruntime/capi/libonnxruntime_providers_shared.so");
    touch("ort/lib/libonnxruntime.so.1.20.1");
    EngineOptions options;
    options.path = root_.string();
    EXPECT_EQ(found(options),
              (Paths{"onnxruntime-1.31.1/onnxruntime/capi/libonnxruntime.so.1.31.1",
                     "ort/lib/libonnxruntime.so.1.20.1",
                     "onnxruntime-1.9.0/onnxruntime/capi/libonnxruntime.so.1.9.0"}));
}

TEST_F(FindLibraries, KeepsTheOrderOfTheSearchFolders) {
    touch("a/libonnxruntime.so.1.20.1");
    touch("b/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1");
    EngineOptions options;
    options.search = {(root_ / "missing").string(), (root_ / "a").string(), (root_ / "b").string()};
    EXPECT_EQ(found(options),
              (Paths{"a/libonnxruntime.so.1.20.1",
                     "b/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1"}));
}

TEST_F(FindLibraries, ListsALibraryOnceHoweverManyLinksLeadToIt) {
    touch("lib/libonnxruntime.so.1.31.1");
    fs::create_symlink("libonnxruntime.so.1.31.1", root_ / "lib/libonnxruntime.so");
    fs::create_symlink("libonnxruntime.so.1.31.1", root_ / "lib/libonnxruntime.so.1");
    EngineOptions options;
    options.path = root_.string();
    const auto libraries = find_libraries(engine_library, options);
    ASSERT_EQ(libraries.size(), 1U);
    EXPECT_EQ(libraries.front().version, "1.31.1");
}

TEST_F(FindLibraries, TakesFolderNamesAsTheyAre) {
    touch("odd[1]*/lib/libonnxruntime.so.1.31.1");
    EngineOptions options;
    options.path = (root_ / "odd[1]*").string();
    EXPECT_EQ(found(options), Paths{"odd[1]*/lib/libonnxruntime.so.1.31.1"});
}

TEST(Versions, AreComparedNumberByNumber) {
    EXPECT_TRUE(older_version("1.9.0", "1.31.1"));
    EXPECT_FALSE(older_version("1.31.1", "1.9.0"));
    EXPECT_FALSE(older_version("1.19", "1.19"));
    EXPECT_TRUE(older_version("1.19", "1.19.2"));
    EXPECT_TRUE(older_version("", "1.0.0"));
}

class CheckElf : public testing::Test {
protected:
    ~CheckElf() override { fs::remove(path_); }

    std::string refusal(std::string_view bytes) {
        std::ofstream(path_, std::ios::binary) << bytes;
        try {
            check_elf(path_);
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::engine);
            EXPECT_FALSE(e.hint().empty());
            return std::string(e.what()).substr(path_.string().size() + 3);
        }
        return "taken";
    }
    static std::string elf(unsigned machine) {
        Elf64_Ehdr header{};
        std::copy_n(ELFMAG, SELFMAG, header.e_ident);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_type = ET_DYN;
        header.e_machine = static_cast<Elf64_Half>(machine);
        header.e_phentsize = sizeof(Elf64_Phdr);
        header.e_phoff = sizeof header;
        header.e_phnum = 1;
        return {reinterpret_cast<const char*>(&header), sizeof header};
    }

    TestFolder scratch_;
    fs::path path_ = scratch_ / "check_elf.so";
};

#if defined(__x86_64__)
constexpr unsigned here = EM_X86_64;
constexpr unsigned elsewhere = EM_AARCH64;
constexpr const char* other_machine = "is for 64-bit ARM, this machine is x86-64";
#else
constexpr unsigned here = EM_AARCH64;
constexpr unsigned elsewhere = EM_X86_64;
constexpr const char* other_machine = "is for x86-64, this machine is 64-bit ARM";
#endif

TEST_F(CheckElf, RefusesWhatIsNoLibraryOfThisMachine) {
    EXPECT_EQ(refusal(""), "is not a shared library");
    EXPECT_EQ(refusal("#!/bin/sh, and some more text"), "is not a shared library");
    EXPECT_EQ(refusal("MZ and then whatever Windows wants"),
              "is a Windows library, not a Linux one");
    EXPECT_EQ(refusal(elf(elsewhere)), other_machine);
    EXPECT_EQ(refusal(elf(9999)).substr(0, 19), "is for machine 9999");
}

TEST_F(CheckElf, RefusesALibraryThatIsCutShort) {
    EXPECT_EQ(refusal(elf(here)), "is cut short or damaged");
    Elf64_Phdr part{};
    part.p_filesz = 1'000'000;
    const std::string_view bytes(reinterpret_cast<const char*>(&part), sizeof part);
    EXPECT_EQ(refusal(elf(here) + std::string(bytes)), "is cut short or damaged");
    part.p_filesz = 10;
    EXPECT_EQ(refusal(elf(here) + std::string(bytes)), "taken");
}

// Libraries that only look like ONNX Runtime, made on the spot.
class LoadLibrary : public testing::Test {
protected:
    ~LoadLibrary() override { fs::remove_all(folder_); }

    // Why a library with this source is not taken. Empty: there is no compiler here.
    std::string refusal(const std::string& name, const std::string& source) {
        fs::create_directories(folder_);
        const auto file = folder_ / (name + ".cpp");
        const auto library = folder_ / ("lib" + name + ".so");
        std::ofstream(file) << "#include <stdexcept>\n" << source;
        const auto command =
            "c++ -shared -fPIC -o " + library.string() + " " + file.string() + " 2>/dev/null";
        if (std::system(command.c_str()) != 0) {
            return {};
        }
        try {
            Library::load(library.string());
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::engine);
            EXPECT_FALSE(e.hint().empty());
            return e.what();
        }
        return "taken";
    }
    static std::string with_version(const std::string& version) {
        return "const void* table(unsigned) { return nullptr; }\n"
               "const char* version() { return \"" +
               version +
               "\"; }\n"
               "struct { void* a; void* b; } base{(void*)table, (void*)version};\n"
               "extern \"C\" void* OrtGetApiBase() { return &base; }\n";
    }

    TestFolder scratch_;
    fs::path folder_ = scratch_ / "load_library";
};

TEST_F(LoadLibrary, RefusesWhatIsTooOldOrBroken) {
    const auto old = refusal("old", with_version("1.18.1"));
    if (old.empty()) {
        GTEST_SKIP() << "no compiler to make a library with";
    }
    const auto at = [&](const std::string& name) {
        return "'" + (folder_ / ("lib" + name + ".so")).string() + "'";
    };
    EXPECT_EQ(old, "ONNX Runtime 1.18.1 at " + at("old") + " is too old: 1.19 or newer is needed");
    EXPECT_EQ(refusal("hollow", with_version("1.31.0")),
              "ONNX Runtime 1.31.0 at " + at("hollow") + " has no C API of version 31");
    EXPECT_EQ(refusal("later", with_version("2.0.0")),
              "ONNX Runtime 2.0.0 at " + at("later") + " has no C API of version 19");
    EXPECT_EQ(refusal("null", "extern \"C\" void* OrtGetApiBase() { return nullptr; }"),
              at("null") + " has no C API");
    EXPECT_EQ(refusal("throwing",
                      "extern \"C\" void* OrtGetApiBase() { throw std::runtime_error(\"no\"); }"),
              at("throwing") + " failed while it was opened: no");
    EXPECT_NE(refusal("incomplete",
                      "extern \"C\" void missing();\n"
                      "extern \"C\" void* OrtGetApiBase() { missing(); return 0; }")
                  .find("cannot be loaded: "),
              std::string::npos);
}

TEST(TrimMessage, KeepsWhatInforms) {
    EXPECT_EQ(trim_message("Load model failed:\n  bad  wire type.\n"),
              "Load model failed: bad wire type");
    EXPECT_EQ(trim_message("/src/core/math.h:540 void a::B::C(int, std::function<int(int)>) const "
                           "axis == 1 was false. Shapes differ: 2 by 3\nStacktrace:\n#1 x"),
              "Shapes differ: 2 by 3");
    EXPECT_EQ(trim_message("Non-zero status code returned while running Add node. Name:'sum' "
                           "Status Message: /src/x.cc:1 f() no memory"),
              "Add 'sum': no memory");
    EXPECT_EQ(trim_message("Non-zero status code returned while running Add node. Name:'' "
                           "Status Message: no memory"),
              "Add: no memory");
    EXPECT_EQ(trim_message(" \n"), "it gave no reason");
}

TEST(Settings, SendsOptionsWhereTheyBelong) {
    EngineOptions options;
    options.options = {
        {"provider", "cuda"}, {"device_id", "1"}, {"config.session.x", "2"}, {"log", "info"}};
    const auto settings = parse_settings(options);
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(settings.provider, "cuda");
    EXPECT_EQ(settings.provider_options, (Pairs{{"device_id", "1"}}));
    EXPECT_EQ(settings.config, (Pairs{{"session.x", "2"}}));
    EXPECT_EQ(settings.log_from, Severity::info);
}

TEST(Settings, RefusesOptionsThatNobodyTakes) {
    for (const auto& option :
         {std::pair<std::string, std::string>{"colour", "red"}, {"log", "loud"}}) {
        EngineOptions options;
        options.options = {option};
        try {
            parse_settings(options);
            ADD_FAILURE() << option.first;
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::usage);
        }
    }
}

}  // namespace
}  // namespace trocar::ort
