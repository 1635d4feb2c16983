// The formats of bytes: idx, CIFAR, AEDAT.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "data/aedat.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "trocar/data.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string big_endian(std::uint32_t number) {
    return {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
            static_cast<char>(number >> 8), static_cast<char>(number)};
}
std::string little_endian(std::uint32_t number) {
    auto bytes = big_endian(number);
    std::ranges::reverse(bytes);
    return bytes;
}

std::string idx(const std::vector<std::uint32_t>& shape, const std::string& elements) {
    std::string file{0, 0, 8, static_cast<char>(shape.size())};
    for (const auto size : shape) {
        file += big_endian(size);
    }
    return file + elements;
}

std::string gzip(const std::string& bytes) {
    z_stream stream{};
    deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string packed(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

Bytes bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

template <class F>
std::string message(const F& work) {
    try {
        work();
    } catch (const Error& e) {
        return fmt::format("{} | {}", e.what(), e.hint());
    }
    return "nothing was wrong";
}

Graph model(const std::vector<std::int64_t>& shape) {
    Type type = Type::tensor(DType::f32);
    type.dims.emplace();
    for (const auto size : shape) {
        type.dims->push_back({size, ""});
    }
    Graph graph;
    graph.add_input("x", type);
    return graph;
}

std::vector<float> floats(const Sample& sample) {
    const auto values = sample.inputs.front().value.as<float>();
    return {values.begin(), values.end()};
}

class BinaryData : public testing::Test {
protected:
    std::unique_ptr<Dataset> open(const Graph& graph, const std::string& name,
                                  const std::string& prep = "", const std::string& split = "") {
        DataOptions options;
        options.path = name.empty() ? folder_.path() : folder_ / name;
        options.preprocess = parse_preprocess(std::vector{prep});
        options.split = split;
        return open_data(options, graph);
    }
    TestFolder folder_;
};

TEST_F(BinaryData, IdxPairsAreFoundPackedOrNot) {
    const auto graph = model({-1, 1, 1, 2});
    write_file(folder_ / "t10k-images-idx3-ubyte.gz", gzip(idx({2, 1, 2}, "abcd")));
    write_file(folder_ / "t10k-labels-idx1-ubyte", idx({2}, {5, 9}));
    write_file(folder_ / "train-images-idx3-ubyte", idx({1, 1, 2}, "xy"));
    const auto test = open(graph, "");
    ASSERT_EQ(2U, test->size());
    EXPECT_EQ(9, test->label(1));
    EXPECT_THAT(floats(test->sample(1)), ElementsAre('c', 'd'));
    const auto train = open(graph, "", "", "train");
    EXPECT_EQ(1U, train->size());
    EXPECT_FALSE(train->labelled());
    EXPECT_EQ(2U, open(graph, "t10k-images-idx3-ubyte.gz")->size());
    EXPECT_THROW(open(graph, "", "", "val"), Error);
}

TEST_F(BinaryData, IdxThatIsNotWholeIsRefused) {
    const auto fault = [](const std::string& bytes) {
        return message([&] { data::read_idx(bytes_of(bytes), nullptr, "'f'"); });
    };
    EXPECT_THAT(fault(idx({2, 2}, "abc")), HasSubstr("declares 4 elements, but 3 follow"));
    EXPECT_THAT(fault(idx({2, 2}, "abcde")), HasSubstr("but more follow"));
    EXPECT_THAT(fault(gzip(idx({2, 2}, "abcde"))), HasSubstr("but more follow"));
    EXPECT_THAT(fault(idx({2, 2}, "abcd").substr(0, 9)), HasSubstr("ends within its header"));
    EXPECT_THAT(fault(""), HasSubstr("is no idx file"));
    EXPECT_THAT(fault(idx({0xffffffff, 0xffffffff, 0xffffffff}, "")), HasSubstr("63 bits"));
    EXPECT_THAT(fault(gzip(idx({0xffffffff}, "ab"))), HasSubstr("packed bytes cannot hold"));
    EXPECT_THAT(fault(gzip(idx({4}, "abcd")).substr(0, 20)), HasSubstr("cannot be unpacked"));
    auto floats = idx({1}, "abcd");
    floats[2] = 13;
    EXPECT_THAT(fault(floats), HasSubstr("not unsigned bytes"));
}

TEST_F(BinaryData, IdxLabelsOfOtherImagesAreRefused) {
    write_file(folder_ / "t10k-images-idx3-ubyte", idx({2, 1, 2}, "abcd"));
    write_file(folder_ / "t10k-labels-idx1-ubyte", idx({3}, {5, 9, 1}));
    EXPECT_THAT(message([&] {
                    open(model({-1, 1, 1, 2}), "");
                }),
                HasSubstr("holds 3 labels for 2 pictures"));
    EXPECT_THAT(message([&] {
                    open(model({-1, 1, 1, 2}), "t10k-labels-idx1-ubyte");
                }),
                HasSubstr("which are no pictures"));
}

std::string cifar_record(const std::string& labels, char red, char green, char blue) {
    return labels + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

TEST_F(BinaryData, CifarHasItsLabels) {
    write_file(folder_ / "test_batch.bin", cifar_record({3}, 1, 2, 3) + cifar_record({9}, 4, 5, 6));
    write_file(folder_ / "data_batch_1.bin", cifar_record({0}, 1, 1, 1));
    write_file(folder_ / "data_batch_2.bin", cifar_record({1}, 1, 1, 1));
    write_file(folder_ / "batches.meta.txt",
               "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
    const auto data = open(model({-1, 3, 32, 32}), "");
    ASSERT_EQ(2U, data->size());
    EXPECT_EQ(9, data->label(1));
    EXPECT_EQ("truck", data->class_names()[9]);
    const auto values = floats(data->sample(1));
    EXPECT_EQ(4, values[0]);
    EXPECT_EQ(5, values[1024]);
    EXPECT_EQ(6, values[3071]);
    EXPECT_EQ(2U, open(model({-1, 3, 32, 32}), "", "", "train")->size());
    EXPECT_EQ("data_batch_2 0", open(model({-1, 3, 32, 32}), "", "", "train")->name(1));
}

TEST_F(BinaryData, Cifar100HasFineLabels) {
    write_file(folder_ / "test.bin", cifar_record({1, 77}, 1, 2, 3));
    EXPECT_EQ(77, open(model({-1, 3, 32, 32}), "")->label(0));
}

TEST_F(BinaryData, CifarOfAnotherSizeIsRefused) {
    const auto fault = [](const std::string& bytes, bool hundred) {
        return message([&] { data::read_cifar(bytes_of(bytes), hundred, "'f'"); });
    };
    EXPECT_THAT(fault(cifar_record({3}, 1, 2, 3), true), HasSubstr("--data-kind cifar10"));
    EXPECT_THAT(fault(cifar_record({10}, 1, 2, 3), false), HasSubstr("has no class 10"));
    EXPECT_THAT(fault("", false), HasSubstr("has 0 bytes"));
}

struct Spike {
    std::uint32_t x, y, on, microseconds;
};

std::string packet(const std::vector<Spike>& spikes, std::uint32_t overflow = 0, int type = 1) {
    const auto count = static_cast<std::uint32_t>(spikes.size());
    auto bytes = little_endian(static_cast<std::uint32_t>(type) | 1U << 16) + little_endian(8) +
                 little_endian(4) + little_endian(overflow) + little_endian(count) +
                 little_endian(count) + little_endian(count);
    for (const auto& spike : spikes) {
        bytes += little_endian(1 | spike.on << 1 | spike.y << 2 | spike.x << 17) +
                 little_endian(spike.microseconds);
    }
    return bytes;
}

const std::string aedat_header =
    "#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n#!END-HEADER\r\n";

TEST_F(BinaryData, EventsAreBinnedByTime) {
    write_file(folder_ / "user.aedat",
               aedat_header + packet({{0, 0, 1, 10}, {3, 1, 0, 11}}) +
                   packet({{0, 0, 1, 1}}, 0, 2) +  // of another type: left out
                   packet({{0, 0, 1, 19}, {0, 0, 1, 19}, {2, 0, 1, 20}, {1, 1, 1, 99}}));
    write_file(folder_ / "user_labels.csv",
               "class,startTime_usec,endTime_usec\n2,10,20\n1,20,100\n");
    const auto data = open(model({-1, 2, 2, 2, 4}), "", "steps=2 sensor=2x4");
    ASSERT_EQ(2U, data->size());
    EXPECT_EQ(1, data->label(0));
    EXPECT_EQ(0, data->label(1));
    EXPECT_EQ("user 1", data->name(1));
    // Step, polarity, row, column.
    EXPECT_THAT(floats(data->sample(0)),
                ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0,  //
                            0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0));
    const auto small =
        open(model({-1, 1, 2, 1, 2}), "user.aedat", "steps=1 sensor=2x4 downscale=2 values=binary");
    EXPECT_THAT(floats(small->sample(0)), ElementsAre(0, 1, 1, 0));
    const auto time_first =
        open(model({2, 1, 2, 2, 4}), "", "steps=2 sensor=2x4 batch=1")->sample(0);
    EXPECT_EQ((Shape{2, 1, 2, 2, 4}), time_first.inputs.front().value.shape());
    const auto counted = open(model({-1, 2, 2, 2, 4}), "", "steps=2 sensor=2x4 split=count");
    EXPECT_EQ(1, floats(counted->sample(0))[7]);
    EXPECT_THAT(message([&] {
                    open(model({-1, 2, 2, 2, 2}), "", "steps=2 sensor=2x2");
                }),
                HasSubstr("outside a sensor of 2x2"));
}

TEST_F(BinaryData, ARecordingWithoutLabelsIsOneSample) {
    write_file(folder_ / "a.aedat",
               aedat_header + packet({{0, 0, 1, 5}}) + packet({{0, 0, 1, 5}}, 1));
    const auto data = open(model({-1, 2, 2, 1, 1}), "a.aedat", "steps=2 sensor=1x1");
    EXPECT_EQ(1U, data->size());
    EXPECT_FALSE(data->labelled());
    EXPECT_THAT(floats(data->sample(0)), ElementsAre(0, 1, 0, 1));  // 2^31 µs lie between
}

TEST_F(BinaryData, BrokenRecordingsAreRefused) {
    const auto fault = [](const std::string& bytes) {
        return message([&] { data::event_packets(bytes_of(bytes), "'f'"); });
    };
    EXPECT_THAT(fault("#!AER-DAT2.0\r\n"), HasSubstr("is AEDAT 2.0; 3.1 is what is read"));
    EXPECT_THAT(fault("abc"), HasSubstr("is no AEDAT recording"));
    EXPECT_THAT(fault("#!AER-DAT3.1"), HasSubstr("ends within its header"));
    const auto whole = aedat_header + packet({{0, 0, 1, 5}});
    EXPECT_EQ("nothing was wrong", fault(whole));
    EXPECT_THAT(fault(whole + "abc"), HasSubstr("ends within its header"));
    EXPECT_THAT(fault(whole.substr(0, whole.size() - 1)),
                HasSubstr("declares 8 bytes, of which 7"));
    auto negative = whole;
    negative[aedat_header.size() + 23] = static_cast<char>(0x80);
    EXPECT_THAT(fault(negative), HasSubstr("has a header that cannot be"));
}

TEST_F(BinaryData, LabelsOfRecordingsAreChecked) {
    write_file(folder_ / "a.aedat", aedat_header + packet({{0, 0, 1, 5}}));
    const auto with = [&](const std::string& row) {
        write_file(folder_ / "a_labels.csv", row);
        return message([&] { open(model({-1, 16, 2, 128, 128}), ""); });
    };
    EXPECT_EQ("nothing was wrong", with("1,0,9\n"));
    EXPECT_THAT(with("0,0,9\n"), HasSubstr("has the class 0"));
    EXPECT_THAT(with("1,9,9\n"), HasSubstr("before its start"));
    EXPECT_THAT(with("1,9\n"), HasSubstr("has 2 fields, not 3"));
    EXPECT_THAT(with("1,a,9\n"), HasSubstr("'a' is no number"));
    EXPECT_THAT(with("class,startTime_usec,endTime_usec\n"), HasSubstr("holds no samples"));
}

}  // namespace
}  // namespace trocar
