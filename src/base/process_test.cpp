#include "base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/fork_server.h"
#include "trocar/error.h"

namespace trocar {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

bool is_gone_within(pid_t process, milliseconds time) {
    for (const auto end = std::chrono::steady_clock::now() + time;
         std::chrono::steady_clock::now() < end;) {
        if (resident_bytes(process) == 0) {
            return true;
        }
        ::usleep(1000);
    }
    return false;
}

TEST(Process, EndsAtEachOfItsLimits) {
    using How = ProcessEnd::How;
    const auto how = [](const char* command, ProcessLimits limits) {
        return Process::shell(command).wait(limits).how;
    };
    EXPECT_EQ(how("exit 3", {}), How::exited);
    EXPECT_EQ(how("kill -SEGV $$", {}), How::signalled);
    EXPECT_EQ(how("sleep 100 & sleep 100", {.time = milliseconds(100)}), How::timed_out);
    EXPECT_EQ(how("while :; do :; done", {.cpu_seconds = 0.2}), How::timed_out);
    EXPECT_EQ(how("sleep 100", {.memory = 1}), How::over_memory);
    EXPECT_EQ(how("sleep 100", {.cancel = [] { return true; }}), How::cancelled);
}

TEST(Process, SleepTakesNoProcessorTime) {
    EXPECT_EQ(Process::shell("sleep 0.5").wait({.cpu_seconds = 0.3}).how, ProcessEnd::How::exited);
}

TEST(Process, IsKilledWithItsWholeGroupWhenNobodyWaits) {
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    const Descriptor read(pipes[0]);
    Descriptor write(pipes[1]);
    std::string text;
    {
        const auto process =
            Process::shell("sleep 100 & echo $!; wait", ProcessStreams{-1, write.get(), -1});
        char c = 0;
        while (::read(read.get(), &c, 1) == 1 && c != '\n') {
            text += c;
        }
    }
    EXPECT_TRUE(is_gone_within(std::stoi(text), milliseconds(5000))) << text;
}

TEST(Process, ReadsAndWritesTheStreamsThatItIsGiven) {
    int in[2];
    int out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    const Descriptor ends[] = {Descriptor(in[0]), Descriptor(out[0]), Descriptor(out[1])};
    ASSERT_EQ(::write(in[1], "abc\n", 4), 4);
    ::close(in[1]);
    const auto end = Process::shell("cat; echo noise >&2", {in[0], out[1], -1}).wait({});
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(end.last_words, "noise\n");
    char text[8] = {};
    EXPECT_EQ(::read(out[0], text, sizeof text), 4);
    EXPECT_STREQ(text, "abc\n");
}

// Sends back what it was told, and its process.
void echo(Descriptor channel, const std::string& arguments, std::vector<Descriptor> more) {
    const auto text = arguments + " " + std::to_string(more.size());
    (void)!::write(channel.get(), text.data(), text.size());
    if (!more.empty()) {
        (void)!::write(more[0].get(), "here", 4);
    }
}
void crash(Descriptor, const std::string&, std::vector<Descriptor>) {
    std::raise(SIGSEGV);
}
void hang(Descriptor channel, const std::string&, std::vector<Descriptor>) {
    (void)!::write(channel.get(), "x", 1);
    for (;;) {
        ::pause();
    }
}
// Threads of its own.
void add(Descriptor channel, const std::string& arguments, std::vector<Descriptor>) {
    int sum = 0;
    std::thread([&] { sum = std::stoi(arguments) + 1; }).join();
    (void)!::write(channel.get(), &sum, sizeof sum);
}

class ForkServerTest : public ::testing::Test {
protected:
    void SetUp() override { ForkServer::start(); }
    ForkServer& server() { return *ForkServer::running(); }
};

std::string read_all(int fd) {
    std::string text;
    char c = 0;
    while (::read(fd, &c, 1) == 1) {
        text += c;
    }
    return text;
}

TEST_F(ForkServerTest, WorkersDoTheirJobAndEnd) {
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    const Descriptor read(pipes[0]);
    Descriptor write(pipes[1]);
    auto worker = server().fork(echo, std::string(1 << 20, 'a'), std::span(&pipes[1], 1));
    write.reset();
    EXPECT_EQ(read_all(worker.channel()), std::string(1 << 20, 'a') + " 1");
    EXPECT_EQ(read_all(read.get()), "here");
    EXPECT_EQ(worker.end(milliseconds(5000)), 0);
    EXPECT_EQ(worker.end(milliseconds(5000)), 0);
}

TEST_F(ForkServerTest, CrashesAreSeenAsTheirSignal) {
    auto worker = server().fork(crash, "");
    const int status = worker.end(milliseconds(5000));
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

TEST_F(ForkServerTest, WorkersThatHangAreKilledInTime) {
    auto worker = server().fork(hang, "");
    char c = 0;
    ASSERT_EQ(::read(worker.channel(), &c, 1), 1);
    const auto start = std::chrono::steady_clock::now();
    const int status = worker.end(milliseconds(50));
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ForkServerTest, SeveralThreadsMayAskAndWorkersMayHaveThreads) {
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 8; ++i) {
                auto worker = server().fork(add, std::to_string(100 * t + i));
                int sum = 0;
                right += ::read(worker.channel(), &sum, sizeof sum) == sizeof sum &&
                         sum == 100 * t + i + 1 && worker.end(milliseconds(5000)) == 0;
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(right, 32);
}

TEST_F(ForkServerTest, SignalsOfTheTerminalAreNotItsOwn) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        ASSERT_EQ(::kill(server().id(), signal), 0);
    }
    EXPECT_EQ(server().fork(echo, "a").end(milliseconds(5000)), 0);
}

TEST_F(ForkServerTest, WhenItIsGoneThatIsSaidAndNobodyWaits) {
    auto worker = server().fork(hang, "");
    ::kill(server().id(), SIGKILL);
    EXPECT_TRUE(is_gone_within(worker.id(), milliseconds(5000)));  // it dies with the server
    EXPECT_EQ(WTERMSIG(worker.end(milliseconds(100))), SIGKILL);
    try {
        server().fork(echo, "");
        FAIL();
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("gives no answer"));
    }
}

TEST_F(ForkServerTest, IsGoneWhenItWasStopped) {
    const auto id = server().id();
    EXPECT_EQ(server().fork(echo, "a").end(milliseconds(5000)), 0);
    ForkServer::stop();
    EXPECT_EQ(ForkServer::running(), nullptr);
    EXPECT_EQ(::kill(id, 0), -1);
    ForkServer::start();
    EXPECT_EQ(server().fork(echo, "a").end(milliseconds(5000)), 0);
}

// In a process of its own, which can be killed.
TEST(ForkServer, DiesWithTheProcessThatStartedIt) {
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    const auto child = ::fork();
    if (child == 0) {
        ForkServer::start();
        const auto worker = ForkServer::running()->fork(hang, "");
        const pid_t both[] = {ForkServer::running()->id(), worker.id()};
        (void)!::write(pipes[1], both, sizeof both);
        for (;;) {
            ::pause();
        }
    }
    pid_t both[2] = {};
    ASSERT_EQ(::read(pipes[0], both, sizeof both), static_cast<ssize_t>(sizeof both));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_gone_within(both[0], milliseconds(5000)));
    EXPECT_TRUE(is_gone_within(both[1], milliseconds(5000)));
    ::close(pipes[0]);
    ::close(pipes[1]);
}

TEST(ForkServer, IsRefusedWhereThereAreThreads) {
    std::atomic<bool> end = false;
    std::thread other([&] {
        while (!end) {
            ::usleep(1000);
        }
    });
    try {
        ForkServer::start();
        ADD_FAILURE();
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::usage);
        EXPECT_THAT(e.what(), HasSubstr("there are 2"));
    }
    end = true;
    other.join();
}

}  // namespace
}  // namespace trocar
