#include "cli/progress.h"

#include <gtest/gtest.h>

namespace trocar::cli {
namespace {

using namespace std::chrono_literals;

class CaughtText : public Stream {
public:
    CaughtText() : Stream(-1, true) {}
    void write(std::string_view text) override { all += text; }
    std::string all;
};

TEST(ProgressLine, SaysHowFarAndHowLong) {
    EXPECT_EQ(progress_line("trials", 250, 1000, 4), "trials  250 of 1,000  25 %  ~12.0 s left");
    EXPECT_EQ(progress_line("trials", 0, 1000, 4), "trials  0 of 1,000  0 %");
    EXPECT_EQ(progress_line("reading", 12345, 0, 4), "reading  12,345");
}

TEST(Progress, ShowsNothingInTheFirstSecond) {
    CaughtText err;
    const auto begin = Progress::Clock::now();
    Progress progress(err, true);
    progress.update("trials", 0, 10, begin);
    progress.update("trials", 1, 10, begin + 900ms);
    EXPECT_EQ(err.all, "");
    progress.update("trials", 2, 10, begin + 1100ms);
    EXPECT_EQ(err.all, "\r\x1b[Ktrials  2 of 10  20 %  ~4.40 s left");
    err.all.clear();
    progress.update("trials", 3, 10, begin + 1150ms);
    EXPECT_EQ(err.all, "");  // too soon to renew
    progress.update("trials", 10, 10, begin + 1300ms);
    EXPECT_EQ(err.all, "\r\x1b[K");
}

TEST(Progress, IsSilentWhereItMayNotSpeak) {
    CaughtText err;
    const auto begin = Progress::Clock::now();
    Progress progress(err, false);
    progress.update("trials", 0, 10, begin);
    progress.update("trials", 2, 10, begin + 5s);
    EXPECT_EQ(err.all, "");
}

}  // namespace
}  // namespace trocar::cli
