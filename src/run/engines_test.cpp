#include <gtest/gtest.h>

#include "trocar/engine.h"
#include "trocar/error.h"

namespace trocar {
namespace {

Fault fault_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& e) {
        return e.fault();
    }
    return Fault::internal;
}

TEST(Engines, AreParsedFromTheirTextForm) {
    const auto options = parse_engine("onnxruntime:/opt/ort,provider=cuda,device_id=1");
    EXPECT_EQ(options.name, "onnxruntime");
    EXPECT_EQ(options.path, "/opt/ort");
    ASSERT_EQ(options.options.size(), 2U);
    EXPECT_EQ(options.options[1].first, "device_id");
    EXPECT_EQ(options.options[1].second, "1");
    EXPECT_EQ(parse_engine("onnxruntime").path, "");
    for (const char* wrong : {"", ":x", "a:", "a,", "a,b", "a,=b"}) {
        EXPECT_EQ(fault_of([&] { parse_engine(wrong); }), Fault::usage) << wrong;
    }
}

TEST(Engines, OfUnknownNameAreRefused) {
    EngineOptions unknown;
    unknown.name = "tea";
    EXPECT_EQ(fault_of([&] { open_engine(unknown); }), Fault::usage);
}

}  // namespace
}  // namespace trocar
