#include "base/kernel_set.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

TEST(KernelSet, NamesTheInstructionsThatChooseKernels) {
    EXPECT_EQ("avx avx2 fma",
              kernel_set("processor\t: 0\nflags\t\t: fpu fma vme avx2 avx\n\nflags\t: avx512f\n"));
    EXPECT_EQ("asimd asimddp", kernel_set("Features\t: fp asimd evtstrm asimddp\n"));
    EXPECT_EQ("", kernel_set("processor : 0\n"));
}

TEST(KernelSet, IsTheSameEachTime) {
    EXPECT_EQ(kernel_set(), kernel_set());
}

}  // namespace
}  // namespace trocar
