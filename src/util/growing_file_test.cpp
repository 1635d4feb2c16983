#include "util/growing_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

// Files of this process may not grow beyond this while it lives: a full disk for one test.
class SmallDisk {
public:
    explicit SmallDisk(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;
    ~SmallDisk() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    rlimit before_{};
    void (*handler_)(int) = nullptr;
};

TEST(GrowingFile, IsThereFromTheStart) {
    const TestFolder folder;
    GrowingFile file(folder.path() / "a");
    file.write("one\n");
    EXPECT_EQ(read_file(folder.path() / "a"), "one\n");
    file.write("two\n");
    file.overwrite(0, "ONE");
    EXPECT_EQ(read_file(folder.path() / "a"), "ONE\ntwo\n");
    EXPECT_EQ(file.size(), 8u);
}

TEST(GrowingFile, TakesBackAPieceThatDoesNotFit) {
    const TestFolder folder;
    GrowingFile file(folder.path() / "a");
    file.write("one\n");
    {
        const SmallDisk disk(10);
        EXPECT_THROW(file.write("a piece that is too long\n"), Error);
    }
    EXPECT_EQ(read_file(folder.path() / "a"), "one\n");
    file.write("two\n");
    EXPECT_EQ(read_file(folder.path() / "a"), "one\ntwo\n");
}

TEST(GrowingFile, NeedsItsFolder) {
    EXPECT_THROW(GrowingFile("/nowhere/a"), Error);
}

}  // namespace
}  // namespace trocar
