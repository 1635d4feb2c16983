#include "util/workers.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace trocar {
namespace {

std::size_t sum_of_parts(int threads, std::size_t parts) {
    std::vector<std::atomic<std::size_t>> done(parts);
    work_together(threads, parts, [&](std::size_t part) { done[part] += part + 1; });
    std::size_t sum = 0;
    for (const auto& one : done) {
        sum += one;
    }
    return sum;
}

TEST(WorkTogether, DoesEveryPartOnce) {
    for (const int threads : {1, 2, 3, 8}) {
        for (const std::size_t parts : {0, 1, 2, 7, 1000}) {
            for (int again = 0; again < 20; ++again) {
                EXPECT_EQ(sum_of_parts(threads, parts), parts * (parts + 1) / 2);
            }
        }
    }
}

TEST(WorkTogether, FromSeveralThreadsAtOnce) {
    std::vector<std::thread> callers;
    std::atomic<int> good = 0;
    for (int i = 0; i < 4; ++i) {
        callers.emplace_back([&] {
            for (int again = 0; again < 100; ++again) {
                good += sum_of_parts(3, 50) == 1275 ? 1 : 0;
            }
        });
    }
    for (auto& caller : callers) {
        caller.join();
    }
    EXPECT_EQ(good, 400);
}

TEST(WorkTogether, InAChildProcessToo) {
    sum_of_parts(2, 10);
    const auto child = ::fork();
    if (child == 0) {
        ::_exit(sum_of_parts(2, 10) == 55 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace trocar
