#include "trocar/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <limits>

#include "graph/test_graphs.h"
#include "trocar/error.h"
#include "trocar/session.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model model_of(Graph graph) {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 10;
    model.opsets = {{"", 17}};
    graph.name = "test";
    model.graph = std::move(graph);
    return model;
}

Type vector_type() {
    auto type = Type::tensor(DType::f32);
    type.dims = {{-1, "n"}};
    return type;
}

Value floats(const std::vector<float>& values) {
    return Value::copy(DType::f32, {static_cast<std::int64_t>(values.size())},
                       std::as_bytes(std::span(values)));
}

// y = -2·relu(x) + relu(x), by the ops A, B, C and Sum.
class Dumps : public ::testing::Test {
protected:
    Dumps() {
        auto graph = residual();
        graph.set_type(graph.inputs()[0], vector_type());
        model_ = model_of(std::move(graph));
        options_.folder = folder_.path() / "dump";
    }

    void run(DumpWriter& writer, const Value& x) {
        EngineOptions engine;
        engine.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
        engine.threads = 1;
        SessionOptions session;
        session.tools = {&writer};
        session.compile.optimize = CompileOptions::Optimize::none;
        writer.start_set(std::vector<DumpInput>{{"x", value_text(x), "test", ""}});
        Session(model_, engine, session).run({{"x", x}});
    }

    Dump dumped(const Value& x) {
        DumpWriter writer(model_, every_op(), options_);
        run(writer, x);
        writer.finish("complete");
        return read_dump(options_.folder);
    }

    static std::vector<std::string> names(const Dump& dump) {
        std::vector<std::string> all;
        for (const auto& record : dump.records) {
            all.push_back(record.name);
        }
        return all;
    }

    TestFolder folder_;
    Model model_;
    DumpOptions options_;
};

TEST_F(Dumps, SayWhatEveryOpWrote) {
    const auto dump = dumped(floats({1, -1, 3}));
    EXPECT_THAT(names(dump), ElementsAre("A", "B", "C", "Sum"));
    EXPECT_EQ(dump.end, "complete");
    EXPECT_EQ(dump.hash_kind, "xxh64");
    EXPECT_EQ(dump.sets.at(0).at(0).name, "x");
    const auto& relu = dump.records[0];
    EXPECT_EQ(relu.type, "Relu");
    EXPECT_EQ(relu.shape, Shape{3});
    EXPECT_EQ(relu.bytes, 12u);
    EXPECT_EQ(relu.hash.size(), 16u);
    EXPECT_EQ(relu.statistics->max, 3);
    EXPECT_EQ(relu.statistics->zeros, 1u);
    EXPECT_EQ(relu.statistics->distribution->p50, 1);
    EXPECT_EQ(relu.file, "");
    EXPECT_THROW(load_tensor(dump, relu), Error);
}

TEST_F(Dumps, HoldTheTensorsInEveryForm) {
    for (const auto as : {DumpOptions::Tensors::npy, DumpOptions::Tensors::npz,
                          DumpOptions::Tensors::safetensors}) {
        options_.tensors = as;
        options_.folder = folder_.path() / std::to_string(static_cast<int>(as));
        const auto dump = dumped(floats({1, -1, 3}));
        ASSERT_EQ(dump.records.size(), 4u);
        const auto sum = load_tensor(dump, dump.records[3]);
        EXPECT_THAT(sum.as<float>(), ElementsAre(-1, 0, -3));
        EXPECT_EQ(dump_hash(sum, DumpOptions::Hash::xxh64), dump.records[3].hash);
        const auto values = load_values(dump.folder / dump.records[3].file);
        EXPECT_EQ(values.size(), as == DumpOptions::Tensors::npy ? 1u : 4u);
    }
}

TEST_F(Dumps, AreReadableAfterEveryRecord) {
    options_.tensors = DumpOptions::Tensors::npz;
    DumpWriter writer(model_, every_op(), options_);
    std::size_t records = 0;
    writer.on_record = [&](const DumpRecord& record) {
        const auto so_far = read_dump(options_.folder);
        EXPECT_EQ(so_far.records.size(), ++records);
        EXPECT_EQ(so_far.end, "");
        EXPECT_EQ(load_tensor(so_far, so_far.records.back()).shape(), record.shape);
    };
    run(writer, floats({1, -1, 3}));
    EXPECT_EQ(records, 4u);
}

TEST_F(Dumps, StayReadableWhenTheDiskIsFull) {
    for (const auto as : {DumpOptions::Tensors::npy, DumpOptions::Tensors::npz,
                          DumpOptions::Tensors::safetensors}) {
        options_.tensors = as;
        options_.folder = folder_.path() / std::to_string(static_cast<int>(as));
        DumpWriter writer(model_, every_op(), options_);
        auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
        rlimit before{};
        ::getrlimit(RLIMIT_FSIZE, &before);
        writer.on_record = [&](const DumpRecord&) {
            const rlimit small{400'000, before.rlim_max};
            ::setrlimit(RLIMIT_FSIZE, &small);
        };
        std::string message;
        try {
            run(writer, floats(std::vector<float>(90'000, 1)));
            if (as != DumpOptions::Tensors::npy) {
                ADD_FAILURE() << "nothing was thrown";
            }
        } catch (const Error& e) {
            message = e.what();
            EXPECT_EQ(e.fault(), Fault::input);
        }
        ::setrlimit(RLIMIT_FSIZE, &before);
        std::signal(SIGXFSZ, handler);
        if (as != DumpOptions::Tensors::npy) {  // whose files are small enough each
            EXPECT_THAT(message, HasSubstr("File too large"));
        }
        const auto dump = read_dump(options_.folder);
        ASSERT_GE(dump.records.size(), 1u);
        for (const auto& record : dump.records) {
            EXPECT_EQ(dump_hash(load_tensor(dump, record), DumpOptions::Hash::xxh64), record.hash);
        }
    }
}

TEST_F(Dumps, EndEarlyWhenAsked) {
    int asked = 0;
    options_.cancel = [&] { return ++asked > 2; };
    DumpWriter writer(model_, every_op(), options_);
    run(writer, floats({1}));
    EXPECT_TRUE(writer.cancelled());
    writer.finish("interrupted");
    const auto dump = read_dump(options_.folder);
    EXPECT_THAT(names(dump), ElementsAre("A", "B"));
    EXPECT_EQ(dump.end, "interrupted");
}

TEST_F(Dumps, FindTheFirstThatIsNotFinite) {
    options_.first_bad = true;
    DumpWriter writer(model_, every_op(), options_);
    run(writer, floats({1, 3e38F}));  // twice that is too large
    ASSERT_TRUE(writer.first_bad());
    EXPECT_EQ(writer.first_bad()->record.name, "B");
    EXPECT_EQ(writer.first_bad()->record.statistics->positive_infinities, 1u);
    EXPECT_TRUE(writer.first_bad()->bad_inputs.empty());
    EXPECT_THAT(names(read_dump(options_.folder)), ElementsAre("A", "B"));
}

TEST_F(Dumps, SayWhenTheFirstBadOneWasGiven) {
    options_.first_bad = true;
    DumpWriter writer(model_, every_op(), options_);
    run(writer, floats({1, std::numeric_limits<float>::infinity()}));
    ASSERT_TRUE(writer.first_bad());
    EXPECT_EQ(writer.first_bad()->record.name, "A");
    EXPECT_THAT(writer.first_bad()->bad_inputs, ElementsAre("'x' holds 1 infinite"));
}

TEST_F(Dumps, LeaveOutAnUnfinishedLine) {
    dumped(floats({1, 2}));
    const auto index = options_.folder / "index.jsonl";
    const auto whole = read_file(index);
    for (std::size_t length = whole.find('\n') + 1; length < whole.size(); length += 7) {
        std::ofstream(index, std::ios::binary) << whole.substr(0, length);
        const auto dump = read_dump(options_.folder);
        EXPECT_LE(dump.records.size(), 4u);
        EXPECT_EQ(dump.end, "");
    }
}

TEST_F(Dumps, RefuseFoldersThatAreNotEmpty) {
    std::filesystem::create_directories(options_.folder);
    write_file(options_.folder / "notes", "mine");
    EXPECT_THROW(DumpWriter(model_, every_op(), options_), Error);
}

TEST(ReadDump, RefusesWhatIsNone) {
    const TestFolder folder;
    const auto fault = [&](const std::string& text) {
        std::ofstream(folder.path() / "index.jsonl", std::ios::binary) << text;
        try {
            read_dump(folder.path());
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    const std::string head = R"({"schema":"trocar.dump/1","hash":"none","about":{}})"
                             "\n";
    EXPECT_EQ(fault(head), "no error");
    EXPECT_THAT(fault(""), HasSubstr("is no index of a dump"));
    EXPECT_THAT(fault("{}\n"), HasSubstr("is no index of a dump"));
    EXPECT_THAT(fault(R"({"schema":"other/9"})"
                      "\n"),
                HasSubstr("'other/9' is not a kind of index"));
    for (const auto* line :
         {"nonsense", "[]", R"({"tensor":3})", R"({"tensor":"a","dtype":"f32","shape":[-1]})",
          R"({"tensor":"a","dtype":"what","shape":[]})",
          R"({"tensor":"a","dtype":"f32","shape":[1],"statistics":{"min":"x"}})"}) {
        EXPECT_NE(fault(head + line + "\n"), "no error") << line;
    }
    EXPECT_EQ(fault(head + R"({"later":"versions may say more"})"
                           "\n"),
              "no error");
}

TEST(ReadDump, StaysInItsFolder) {
    Dump dump;
    dump.folder = "somewhere";
    DumpRecord record;
    record.tensor = "a";
    record.dtype = DType::f32;
    record.offset = 0;
    for (const auto* file : {"/etc/passwd", "../a", "a/../../b"}) {
        record.file = file;
        try {
            load_tensor(dump, record);
            ADD_FAILURE() << file;
        } catch (const Error& e) {
            EXPECT_THAT(e.what(), HasSubstr("outside"));
        }
    }
}

}  // namespace
}  // namespace trocar
