#include "inject/patience.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace trocar::inject {
namespace {

TEST(Patience, SlowMachinesMakeNoHang) {
    const Patience patience(0, 0.01);
    // A machine on which others have nine tenths of the time, or that slept for a minute.
    EXPECT_FALSE(patience.is_over({90, 9}));
    EXPECT_FALSE(patience.is_over({60, 0.01}));
    // An endless loop, and one that waits for ever.
    EXPECT_TRUE(patience.is_over({10.1, 10.1}));
    EXPECT_TRUE(patience.is_over({101, 0.01}));
    EXPECT_EQ(patience.text(), "over the time limit");
}

TEST(Patience, FollowsTheGoldenRun) {
    const Patience patience(0, 2);
    EXPECT_FALSE(patience.is_over({1000, 199}));
    EXPECT_TRUE(patience.is_over({201, 201}));
    EXPECT_FALSE(patience.is_over({201, 201}, 3));
    EXPECT_TRUE(patience.is_over({601, 601}, 3));
}

// Threads of an engine may be busy for more seconds than there are on the wall.
TEST(Patience, ManyThreadsMakeNoHang) {
    EXPECT_FALSE(Patience(0, 0).is_over({5, 40}));
}

TEST(Patience, WhatTheUserGivesIsTimeOnTheWall) {
    const Patience patience(0.5, 2);
    EXPECT_TRUE(patience.is_over({0.6, 0}));
    EXPECT_FALSE(patience.is_over({0.4, 0.4}));
    EXPECT_EQ(patience.text(), "over 0.5 s");
}

TEST(Clocks, TellBusyProcessesFromIdleOnes) {
    const auto child = [](bool busy) {
        const auto id = ::fork();
        if (id == 0) {
            for (volatile unsigned i = 0;;) {
                i = i + 1;
                if (!busy) {
                    ::pause();
                }
            }
        }
        return id;
    };
    const auto idle = child(false);
    const auto busy = child(true);
    const auto start = Clocks::now();
    // As long as it takes to have the processor for a while.
    while (Clocks::now_of(busy).busy < 0.1 && (Clocks::now() - start).wall < 60) {
        ::usleep(1000);
    }
    EXPECT_GE(Clocks::now_of(busy).busy, 0.1);
    EXPECT_LT(Clocks::now_of(idle).busy, 0.1);
    for (const auto id : {idle, busy}) {
        ::kill(id, SIGKILL);
        ::waitpid(id, nullptr, 0);
    }
    EXPECT_EQ(Clocks::now_of(busy).busy, 0);
}

}  // namespace
}  // namespace trocar::inject
