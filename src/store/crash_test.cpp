// What is left of a store when its process is killed, or its disk fails, at any moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "store/test_campaign.h"
#include "trocar/error.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// In memory where there is such a folder: there a sync costs nothing.
const bool in_memory = ::access("/dev/shm", W_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 1) == 0;

constexpr std::uint64_t trials = 60;
constexpr StoreOptions often{7, 1e9};  // commits every few rows

CampaignStore opened(const std::filesystem::path& path) {
    try {
        return CampaignStore::open(path, often);
    } catch (const Error&) {
        return CampaignStore::create(path, small_header(), often);
    }
}

std::string uninterrupted(const TestFolder& folder) {
    auto store = CampaignStore::create(folder / "whole.db", small_header(), often);
    work(store, 0, trials);
    return store.digest();
}

TEST(Crashes, KilledAtAnyMomentItGoesOn) {
    const TestFolder folder;
    const auto whole = uninterrupted(folder);
    std::mt19937 random(5);
    std::uint64_t kills = 0;
    for (int round = 0; round < 12; ++round) {
        const auto path = folder / ("run" + std::to_string(round) + ".db");
        std::uint64_t before = 0;
        for (bool ended = false; !ended;) {
            const auto child = ::fork();
            if (child == 0) {
                auto store = opened(path);
                work(store, 0, trials);
                ::_exit(0);
            }
            std::this_thread::sleep_for(
                std::chrono::microseconds(random() % (in_memory ? 8'000 : 40'000)));
            ::kill(child, SIGKILL);
            int status = 0;
            ::waitpid(child, &status, 0);
            ended = WIFEXITED(status);
            kills += ended ? 0 : 1;
            if (std::filesystem::exists(path) && std::filesystem::file_size(path) > 0) {
                const auto now = opened(path).result_count();
                EXPECT_GE(now, before) << "committed rows are gone";
                before = now;
            }
        }
        EXPECT_EQ(opened(path).digest(), whole);
    }
    EXPECT_GT(kills, in_memory ? 5u : 1u);
}

// A file system that fails from the n-th write, sync, truncation or removal on.
class FailingDisk {
public:
    FailingDisk() {
        real_ = sqlite3_vfs_find(nullptr);
        self_ = this;
        vfs_ = *real_;
        vfs_.zName = "failing";
        vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
        vfs_.xOpen = open;
        vfs_.xDelete = remove;
        methods_.iVersion = 1;
        methods_.xClose = [](sqlite3_file* f) { return under(f)->pMethods->xClose(under(f)); };
        methods_.xRead = [](sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
            return under(f)->pMethods->xRead(under(f), to, n, at);
        };
        methods_.xWrite = [](sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
            // A disk that fails may have written a part.
            if (self_->fails()) {
                under(f)->pMethods->xWrite(under(f), from, n / 2, at);
                return self_->code_;
            }
            return under(f)->pMethods->xWrite(under(f), from, n, at);
        };
        methods_.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
            return self_->fails() ? SQLITE_IOERR_TRUNCATE
                                  : under(f)->pMethods->xTruncate(under(f), size);
        };
        methods_.xSync = [](sqlite3_file* f, int flags) {
            return self_->fails() ? SQLITE_IOERR_FSYNC : under(f)->pMethods->xSync(under(f), flags);
        };
        methods_.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
            return under(f)->pMethods->xFileSize(under(f), size);
        };
        methods_.xLock = [](sqlite3_file* f, int level) {
            return under(f)->pMethods->xLock(under(f), level);
        };
        methods_.xUnlock = [](sqlite3_file* f, int level) {
            return under(f)->pMethods->xUnlock(under(f), level);
        };
        methods_.xCheckReservedLock = [](sqlite3_file* f, int* out) {
            return under(f)->pMethods->xCheckReservedLock(under(f), out);
        };
        methods_.xFileControl = [](sqlite3_file* f, int op, void* arg) {
            return under(f)->pMethods->xFileControl(under(f), op, arg);
        };
        methods_.xSectorSize = [](sqlite3_file* f) {
            return under(f)->pMethods->xSectorSize(under(f));
        };
        methods_.xDeviceCharacteristics = [](sqlite3_file* f) {
            return under(f)->pMethods->xDeviceCharacteristics(under(f));
        };
        sqlite3_vfs_register(&vfs_, 1);
    }
    FailingDisk(const FailingDisk&) = delete;
    FailingDisk& operator=(const FailingDisk&) = delete;
    ~FailingDisk() { sqlite3_vfs_unregister(&vfs_); }

    // Operations from the n-th on fail, or the n-th alone; -1: none does.
    void fail_at(std::int64_t n, bool for_ever, int code = SQLITE_IOERR_WRITE) {
        left_ = n;
        for_ever_ = for_ever;
        code_ = code;
    }
    bool failed() const { return left_ < 0; }

private:
    struct File {
        sqlite3_file base;
    };
    static sqlite3_file* under(sqlite3_file* file) {
        return reinterpret_cast<sqlite3_file*>(reinterpret_cast<File*>(file) + 1);
    }
    static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
        file->pMethods = nullptr;
        const int code = self_->real_->xOpen(self_->real_, name, under(file), flags, out);
        if (under(file)->pMethods) {
            file->pMethods = &self_->methods_;
        }
        return code;
    }
    static int remove(sqlite3_vfs*, const char* name, int sync) {
        return self_->fails() ? SQLITE_IOERR_DELETE
                              : self_->real_->xDelete(self_->real_, name, sync);
    }
    bool fails() {
        if (off_) {
            return false;
        }
        if (left_ > 0) {
            --left_;
            return false;
        }
        if (left_ == 0 || for_ever_) {
            left_ = -1;
            return true;
        }
        return false;
    }

public:
    bool off_ = true;

private:
    static inline FailingDisk* self_ = nullptr;
    sqlite3_vfs* real_ = nullptr;
    sqlite3_vfs vfs_{};
    sqlite3_io_methods methods_{};
    std::int64_t left_ = 0;
    bool for_ever_ = false;
    int code_ = SQLITE_IOERR_WRITE;
};

TEST(Crashes, WhateverTheDiskRefusesNothingCommittedIsLost) {
    const TestFolder folder;
    const auto whole = uninterrupted(folder);
    FailingDisk disk;
    int refusals = 0;
    for (const bool for_ever : {true, false}) {
        bool reached_end = false;
        for (std::int64_t n = 0; !reached_end; n += 1 + n / 8) {
            const auto path = folder / "run.db";
            std::filesystem::remove(path);
            std::filesystem::remove(path.string() + "-journal");
            std::uint64_t committed = 0;
            disk.fail_at(n, for_ever, n % 2 == 0 ? SQLITE_FULL : SQLITE_IOERR_WRITE);
            disk.off_ = false;
            try {
                auto store = CampaignStore::create(path, small_header(), often);
                for (std::uint64_t last = 10; last <= trials; last += 10) {
                    work(store, 0, last);
                    committed = last * 2;
                }
                reached_end = !disk.failed();
            } catch (const Error& e) {
                EXPECT_TRUE(e.fault() == Fault::input) << e.what();
                EXPECT_THAT(e.what(), ::testing::AnyOf(HasSubstr("the disk is full"),
                                                       HasSubstr("cannot read or write"),
                                                       HasSubstr("cannot open")));
                ++refusals;
            }
            disk.off_ = true;
            auto store = opened(path);
            EXPECT_GE(store.result_count(), committed) << "operation " << n;
            work(store, 0, trials);
            EXPECT_EQ(store.digest(), whole) << "operation " << n;
        }
    }
    EXPECT_GT(refusals, 20);
}

TEST(Crashes, WhatCouldNotBeWrittenIsWrittenByTheNextCommit) {
    const TestFolder folder;
    const auto whole = uninterrupted(folder);
    FailingDisk disk;
    auto store = CampaignStore::create(folder / "run.db", small_header(), {1000, 1e9});
    disk.fail_at(3, true, SQLITE_FULL);
    for (std::uint64_t trial = 0; trial < 5; ++trial) {
        const auto fault = fault_of_trial(trial);
        store.add_faults({&fault, 1});
        for (const std::uint64_t input : {0u, 1u}) {
            const auto result = result_of_trial(trial, input);
            store.append({&result, 1}, effects_of_trial(trial, input));
        }
    }
    disk.off_ = false;
    EXPECT_THROW(store.commit(), Error);
    EXPECT_THROW(store.commit(), Error);
    disk.off_ = true;
    store.commit();
    EXPECT_EQ(store.result_count(), 10u);
    work(store, 5, trials);
    EXPECT_EQ(store.digest(), whole);
}

TEST(Crashes, AFullDiskIsCalledThat) {
    const TestFolder folder;
    const auto path = folder / "run.db";
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    std::string message;
    std::string hint;
    {
        auto store = CampaignStore::create(path, small_header(), often);
        work(store, 0, 10);
        const rlimit small{std::filesystem::file_size(path) + 20'000, before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &small);
        try {
            work(store, 10, 2000);
        } catch (const Error& e) {
            message = e.what();
            hint = e.hint();
        }
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_THAT(message, HasSubstr("the disk is full"));
    EXPECT_THAT(hint, HasSubstr("resume"));
    auto store = CampaignStore::open(path);
    EXPECT_GE(store.result_count(), 20u);
    EXPECT_LT(store.result_count(), 4000u);
}

}  // namespace
}  // namespace trocar
