#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/json.h"
#include "campaign/words.h"
#include "trocar/campaign_file.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using ::testing::HasSubstr;

constexpr const char* whole_campaign = R"(model: models/digits.onnx
engine: onnxruntime,provider=cpu
threads: 1
view: source
seed: 7
data:
  path: digits/
  kind: images
  limit: 100
  preprocess:
    mean: [0.5, 0.25, 0.5]
    resize: 256
    scale: 0.00392156862745098
faults:
  - target: weights
    ops: Conv & module:layer1.*
    bits: exponent
    duration: every 3 from 1
  - target: activations
    tensors: "*relu*"
    dtype: f32
    elements: "[0,2:4,::2]"
    effect: random -1 1
    extent: channel
trials: {margin: 1 %, confidence: 0.99}
stratify: [layer, bit]
allocation: data-aware
stop_at: 0.01
faults_per_trial: 2
inputs_per_fault: 5
only_correct: yes
monitors: {nan: all, ranges: clip, margin: 0.1}
metric: ./measure.py --fast
layer_effects: true
accelerate: {twins: false, batch: 8}
memory: 512 MiB
workers: 4
audit: 5 %
store: run.db
)";

CampaignFile parse(const std::string& text) {
    return parse_campaign(text, "c.yaml");
}

std::string refusal(const std::string& text) {
    try {
        parse(text);
    } catch (const Error& e) {
        EXPECT_TRUE(e.fault() == Fault::input);
        return fmt::format("{} ({})", e.what(), e.hint());
    }
    return "no error";
}

TEST(CampaignFiles, SayTheWholeExperiment) {
    const auto c = parse(whole_campaign);
    EXPECT_EQ(c.model, "models/digits.onnx");
    EXPECT_EQ(c.threads, 1);
    EXPECT_EQ(c.view, View::source);
    EXPECT_EQ(c.seed, 7u);
    EXPECT_EQ(c.data->limit, 100u);
    using Step = std::pair<std::string, std::string>;
    EXPECT_THAT(c.data->preprocess,
                ::testing::ElementsAre(Step{"resize", "256"}, Step{"scale", "0.00392156862745098"},
                                       Step{"mean", "0.5,0.25,0.5"}));
    ASSERT_EQ(c.populations.size(), 2u);
    EXPECT_EQ(c.populations[0].bits, "exponent");
    EXPECT_EQ(c.populations[0].duration.period, 3u);
    EXPECT_EQ(c.populations[1].target, Population::Target::activations);
    EXPECT_EQ(c.populations[1].elements.ranges.size(), 3u);
    EXPECT_EQ(c.populations[1].effect.kind, Effect::Kind::random);
    EXPECT_EQ(c.populations[1].effect.a, -1);
    EXPECT_EQ(c.populations[1].extent, Population::Extent::channel);
    EXPECT_DOUBLE_EQ(*c.margin, 0.01);
    EXPECT_DOUBLE_EQ(c.confidence, 0.99);
    EXPECT_TRUE(c.by_layer && c.by_bit && !c.by_target);
    EXPECT_EQ(c.allocation, Allocation::data_aware);
    EXPECT_EQ(c.inputs_per_fault, 5u);
    EXPECT_TRUE(c.only_correct && c.nan_everywhere && c.layer_effects);
    EXPECT_EQ(c.ranges, Ranges::clip);
    EXPECT_EQ(c.metric, "./measure.py --fast");
    EXPECT_FALSE(c.accelerate.twins);
    EXPECT_TRUE(c.accelerate.prefix);
    EXPECT_EQ(c.memory, std::uint64_t{512} << 20);
    EXPECT_DOUBLE_EQ(c.audit, 0.05);
    EXPECT_EQ(c.store, "run.db");
}

TEST(CampaignFiles, AreWrittenAsTheyRead) {
    for (const char* text :
         {whole_campaign, "model: m.onnx\n", "model: \"true\"\nstratify: []\n",
          "model: m\nfaults:\n  list:\n    - conv1.weight [3,0,1,1] flip 30\n    - \"'a\\\"b' [*] "
          "zero + c [#1] noise 0.5 key 3 transient 5\"\n",
          "model: m\nfaults: {file: x.txt}\ninputs: {sources: [a.npy, 'x=b.npy'], fill: random}\n",
          "model: m\nfaults: [{effect: rate 1e-7, extent: tensor}, {effect: custom 'my own'}]\n"
          "trials: exhaustive\naccelerate: off\n"}) {
        const auto once = campaign_text(parse(text));
        EXPECT_EQ(campaign_text(parse(once)), once) << text;
        EXPECT_EQ(canonical_text(parse(once)), canonical_text(parse(text)));
    }
}

TEST(CampaignFiles, OfTheSameCampaignHaveTheSameText) {
    const auto a = parse("seed: 3\nmodel: a.onnx\ntrials: 100\nfaults:\n- bits: 30\n");
    const auto b = parse(
        "{\"trials\": 100, model: b/a.onnx, seed: 3, workers: 8, audit: 1 %, store: x.db, memory: "
        "1 "
        "GB, accelerate: false, faults: {target: weights, effect: flip, bits: [30]}, threads: 2}");
    EXPECT_EQ(canonical_text(a), canonical_text(b));
    EXPECT_NE(canonical_text(a), canonical_text(parse("seed: 4\nmodel: a\ntrials: 100\n")));
    EXPECT_NE(canonical_text(a),
              canonical_text(parse("seed: 3\ntrials: 100\nfaults:\n- bits: 29\n")));
    // Stores of campaigns without a decision compare this text.
    EXPECT_THAT(canonical_text(a), ::testing::Not(HasSubstr("decision")));
    EXPECT_EQ(canonical_text(parse("model: a\ndecision: auto\n")),
              canonical_text(parse("model: a\n")));
    EXPECT_THAT(canonical_text(parse("model: a\ndecision: topk:05:logits\n")),
                HasSubstr("\ndecision: \"topk:5:logits\"\n"));
}

TEST(CampaignFiles, SayWhereTheyAreWrong) {
    EXPECT_EQ(refusal("model: m\nsed: 3\n").substr(0, 70),
              "c.yaml:2: there is no key 'sed' here (did you mean 'seed'? known are: ");
    EXPECT_THAT(refusal("faults:\n  - target: weights\n    bit: 3\n"),
                HasSubstr("c.yaml:3: faults[0]: there is no key 'bit' here (did you mean 'bits'?"));
    EXPECT_THAT(refusal("model: a\nmodel: b\n"), HasSubstr("c.yaml:2: the key 'model' is there"));
    EXPECT_THAT(refusal("seed: many\n"),
                HasSubstr("c.yaml:1: seed: expected a whole number, not 'many'"));
    EXPECT_THAT(refusal("seed: -1\n"), HasSubstr("expected a whole number"));
    EXPECT_THAT(refusal("seed: 99999999999999999999\n"), HasSubstr("lies outside of"));
    EXPECT_THAT(refusal("seed:\n"), HasSubstr("the key 'seed' has no value"));
    EXPECT_THAT(refusal("monitors:\n  ranges: clop\n"),
                HasSubstr("c.yaml:2: monitors.ranges: cannot be 'clop' (did you mean 'clip'?"));
    EXPECT_THAT(refusal("audit: 5\n"), HasSubstr("lies outside of 0 to 1 (percentages are"));
    EXPECT_THAT(refusal("memory: lots\n"), HasSubstr("a number of bytes"));
    EXPECT_THAT(refusal("memory: 9e99 GB\n"), HasSubstr("a number of bytes"));
    EXPECT_THAT(refusal("faults: [{ops: 'Conv &'}]\n"), HasSubstr("c.yaml:1: faults[0].ops: "));
    EXPECT_THAT(refusal("faults: [{effect: flop}]\n"), HasSubstr("did you mean 'flip'?"));
    EXPECT_THAT(refusal("faults: [{effect: 'flip 3 + x [*] flip'}]\n"), HasSubstr("is no effect"));
    EXPECT_THAT(refusal("faults: [{effect: zero transient 3}]\n"), HasSubstr("says more"));
    EXPECT_THAT(refusal("faults: [{duration: sometimes}]\n"), HasSubstr("is no duration"));
    EXPECT_THAT(refusal("faults: [{elements: '[1,2'}]\n"), HasSubstr("faults[0].elements"));
    EXPECT_THAT(refusal("faults: [{bits: sgin}]\n"), HasSubstr("faults[0].bits"));
    EXPECT_THAT(refusal("faults: [{dtype: f33}]\n"), HasSubstr("is no type of elements"));
    EXPECT_THAT(refusal("faults: [{list: ['x y z']}]\n"), HasSubstr("faults[0].list[0]: in the"));
    EXPECT_THAT(refusal("trials: {confidence: 0.9}\n"), HasSubstr("it needs a margin"));
    EXPECT_THAT(refusal("data: {kind: images}\n"), HasSubstr("c.yaml:1: data: it needs a path"));
    EXPECT_THAT(refusal("a: [1, 2\n"), HasSubstr("this is not YAML"));
    EXPECT_THAT(refusal(""), HasSubstr("this is not a campaign"));
    EXPECT_THAT(refusal("- a\n- b\n"), HasSubstr("this is not a campaign"));
}

TEST(CampaignFiles, DoNotContradictThemselves) {
    EXPECT_THAT(refusal("faults: [{list: ['x [0] flip 1']}, {bits: 3}]\n"), HasSubstr("not both"));
    EXPECT_THAT(refusal("faults: [{list: ['x [0] flip 1'], bits: 3}]\n"), HasSubstr("two entries"));
    EXPECT_THAT(refusal("faults: [{file: a.txt}]\ntrials: 3\n"), HasSubstr("all tried"));
    EXPECT_THAT(refusal("data: d\ninputs: {fill: random}\n"), HasSubstr("not from both"));
    EXPECT_THAT(refusal("only_correct: true\n"), HasSubstr("needs data"));
    EXPECT_THAT(refusal("trials: exhaustive\nfaults_per_trial: 2\n"), HasSubstr("one fault per"));
    EXPECT_THAT(refusal("trials: {margin: 0}\n"), HasSubstr("a margin lies between 0 and 1"));
    EXPECT_THAT(refusal("confidence: 1\n"), HasSubstr("a confidence lies between 0 and 1"));
    EXPECT_THAT(refusal("stop_at: 0\n"), HasSubstr("the half-width to stop at"));
}

TEST(CampaignFiles, HaveAConfidenceOfAllIntervals) {
    const auto file = parse("model: m\nconfidence: 99 %\ntrials: 300\naudit: 1\n");
    EXPECT_DOUBLE_EQ(file.confidence, 0.99);
    EXPECT_DOUBLE_EQ(file.audit, 1);
    EXPECT_DOUBLE_EQ(parse(campaign_text(file)).confidence, 0.99);
    // It changes no result.
    EXPECT_EQ(canonical_text(file), canonical_text(parse("model: m\ntrials: 300\n")));
    EXPECT_DOUBLE_EQ(
        parse(campaign_text(parse("model: m\ntrials: {margin: 0.1, confidence: 0.9}\n")))
            .confidence,
        0.9);
}

TEST(CampaignFiles, AreReadWithTheFilesTheyName) {
    const TestFolder folder;
    std::ofstream(folder / "c.yaml") << "model: m.onnx\ndata: ../d\nfaults:\n  file: faults.txt\n";
    std::ofstream(folder / "faults.txt") << "# two\nx [0] flip 1\n\n  y [1] zero + x [0] flip 2 \n";
    const auto c = read_campaign(folder / "c.yaml");
    EXPECT_EQ(c.model, (folder / "m.onnx").string());
    EXPECT_EQ(c.data->path, (folder.path().parent_path() / "d").string());
    ASSERT_EQ(c.list.size(), 2u);
    EXPECT_EQ(c.list[1].size(), 2u);
    std::ofstream(folder / "faults.txt") << "x [0] flip 1\nx [0] flap 1\n";
    try {
        read_campaign(folder / "c.yaml");
        FAIL();
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("faults.txt:2: in the fault"));
    }
}

TEST(CampaignFiles, OfTheDocumentationAreRight) {
    const auto page = read_file(TROCAR_SOURCE_DIR "/docs/inject-campaign.md");
    int found = 0;
    for (auto at = page.find("```yaml\n"); at != std::string::npos;
         at = page.find("```yaml\n", at)) {
        at += 8;
        EXPECT_NO_THROW(parse(page.substr(at, page.find("```", at) - at))) << page.substr(at, 80);
        ++found;
    }
    EXPECT_EQ(found, 2);
}

// The keys of the schema and of the reader are the same.
TEST(CampaignFiles, HaveASchema) {
    const auto schema = Json::parse_or_throw(campaign_schema());
    const auto known = [](const std::string& before, const std::string& key) {
        const auto said = refusal(before + key + ": {}\n");
        return said.find("there is no key") == std::string::npos;
    };
    const auto check = [&](const Json& object, const std::string& before,
                           const std::string& indent) {
        for (const auto& [key, value] : object.at("properties").items()) {
            EXPECT_TRUE(known(before, indent + key)) << before << key;
        }
        const auto said = refusal(before + indent + "zzz: 1\n");
        const auto list = said.substr(said.find("known are: "));
        EXPECT_EQ(std::count(list.begin(), list.end(), ',') + 1,
                  static_cast<std::ptrdiff_t>(object.at("properties").size()) +
                      (before == "faults:\n" ? 2 : 0));
    };
    check(schema, "", "");
    const auto& top = schema.at("properties");
    check(top.at("monitors"), "monitors:\n", "  ");
    check(top.at("accelerate").at("oneOf").at(1), "accelerate:\n", "  ");
    check(top.at("data").at("oneOf").at(1), "data:\n", "  ");
    check(top.at("data").at("oneOf").at(1).at("properties").at("preprocess"),
          "data:\n  preprocess:\n", "    ");
    check(schema.at("$defs").at("population"), "faults:\n", "  ");
}

TEST(CampaignFiles, SayHowOftenFaultsAreDrawnAndWhatEndsThem) {
    const auto file = parse(
        "model: m.onnx\nimportance: [{bits: 23-30, factor: 10}, {layers: /conv1/*, factor: 0.5}]\n"
        "time_limit: 5\nisolate: false\npostprocess: ./boxes.py\n");
    const std::vector<Importance> wanted{{"23-30", "", 10}, {"", "/conv1/*", 0.5}};
    EXPECT_EQ(file.importance, wanted);
    EXPECT_EQ(file.time_limit, 5);
    EXPECT_FALSE(file.isolate);
    EXPECT_EQ(file.postprocess, "./boxes.py");
    const auto again = parse(campaign_text(file));
    EXPECT_EQ(again.importance, wanted);
    EXPECT_EQ(canonical_text(again), canonical_text(file));
    EXPECT_THAT(canonical_text(file), HasSubstr("factor: 10"));
    EXPECT_THROW(parse("model: m.onnx\nimportance: [{factor: 2}]\n"), Error);
    EXPECT_EQ(parse("model: m.onnx\nimportance: [{bits: 1, factor: 2}]\nstop_at: 0.1\n").stop_at,
              0.1);
    EXPECT_THROW(parse("model: m.onnx\nimportance: [{bits: 1, factor: 2}]\ntrials: exhaustive\n"),
                 Error);
}

TEST(CampaignFiles, KnowToolsByNameAndSettings) {
    const auto one = parse("model: m\ntools: lib/a.so,scale=2\nanswer_limit: 5\n");
    EXPECT_THAT(one.tools, ::testing::ElementsAre("lib/a.so,scale=2"));
    EXPECT_EQ(one.answer_limit, 5);
    EXPECT_EQ(campaign_text(parse(campaign_text(one))), campaign_text(one));
    const auto elsewhere = parse("model: m\ntools: ['/x/a.so,scale=2']\nanswer_limit: 5\n");
    EXPECT_EQ(canonical_text(one), canonical_text(elsewhere));
    EXPECT_NE(canonical_text(one), canonical_text(parse("model: m\ntools: a.so,scale=3\n")));
    EXPECT_THAT(refusal("model: m\ntools: [',a=b']\n"), HasSubstr("names no tool library"));
    const TestFolder folder;
    std::ofstream(folder / "c.yaml") << "model: m\ntools: [\"lib/a.so,scale=2\", /x/b.so]\n";
    EXPECT_THAT(
        read_campaign(folder / "c.yaml").tools,
        ::testing::ElementsAre((folder.path() / "lib/a.so").string() + ",scale=2", "/x/b.so"));
}

}  // namespace
}  // namespace trocar
