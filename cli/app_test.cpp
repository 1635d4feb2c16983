#include "cli/app.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "cli/interrupt.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar::cli {
namespace {

class Caught : public Stream {
public:
    Caught() : Stream(-1, false) {}
    void write(std::string_view text) override {
        if (broken) {
            throw BrokenPipe();
        }
        all += text;
    }
    std::string all;
    bool broken = false;
};

struct ToyOptions {
    std::string model;
    std::vector<std::string> more;
    std::string how = "fine";
    std::string cut = "none";
    std::vector<std::string> inputs;
    std::int64_t top = 20;
    double limit = 0.5;
    bool deep = false;
};

// A tool whose model names what happens.
std::function<Report(Context&)> bind_toy(Args& args) {
    auto options = std::make_shared<ToyOptions>();
    args.positional(options->model, "MODEL", "Model file");
    args.positionals(options->more, "[MORE]", "More of them");
    args.choice("--how", options->how, "fine|badly", "How it goes");
    args.option("-c,--cut", options->cut, "SELECTOR", "Where to cut");
    args.option("--input", options->inputs, "NAME=FILE", "An input; of any kind");
    args.option("--top", options->top, "N", "Rows to show");
    args.option("--limit", options->limit, "X", "Most of it");
    args.flag("--deep", options->deep, "Look deep");
    args.example("trocar toy fine.onnx", "all of it");
    return [options](Context& context) {
        if (options->model == "engine") {
            throw Error(Fault::engine, "the engine broke", "mend it");
        }
        if (options->model == "bug") {
            throw std::out_of_range("vector::at");
        }
        if (options->model == "memory") {
            throw std::bad_alloc();
        }
        context.log(LogLevel::info, "an info");
        context.log(LogLevel::warning, "a warning");
        Report report;
        report.tool = "toy";
        report.verdict = options->model != "no";
        report.partial = context.interrupted();
        report.warnings = {"take care"};
        report.context = context.describe(Model(), false);
        Section section{"options", "Options", {}};
        const auto add = [&](const char* key, Cell value) {
            section.scalars.push_back({key, key, std::move(value), Show::plain, ""});
        };
        add("model", options->model);
        add("more", options->more);
        add("how", options->how);
        add("cut", options->cut);
        add("inputs", options->inputs);
        add("top", options->top);
        add("limit", options->limit);
        add("deep", options->deep);
        add("seed", context.seed());
        add("threads", context.threads());
        report.sections.push_back(std::move(section));
        return report;
    };
}

std::function<Report(Context&)> bind_needy(Args& args) {
    auto options = std::make_shared<ToyOptions>();
    args.positionals(options->more, "MODEL", "Models");
    args.positional(options->model, "PART", "Where it goes");
    args.option("--to", options->cut, "TENSOR", "Where the part ends");
    args.require("--to");
    return [options](Context&) {
        Report report;
        report.notes = {options->more.front() + "+" + options->more.back() + ">" + options->model};
        return report;
    };
}

const Command toy{"toy", "Play with a model", bind_toy};
const Command needy{"needy", "Need a lot", bind_needy};

std::function<Report(Context&)> bind_schema(Args&) {
    return [](Context&) {
        Report report;
        report.document = "{}\n";
        return report;
    };
}

const Command schema{"schema", "Print a schema", bind_schema};
const Command again{"again", "Play again", bind_needy};
const std::array<const Command*, 2> commands_of_game{&again, &schema};
const Command game{"game", "Play, or else", bind_toy, commands_of_game};
const Command idle{"idle", "Nothing by itself", nullptr, commands_of_game};

class App : public testing::Test {
protected:
    int trocar(const std::vector<std::string>& arguments) {
        out.all.clear();
        err.all.clear();
        const std::array<const Command*, 4> tools{&game, &idle, &needy, &toy};
        return run(arguments, tools, {out, err});
    }
    bool says(const Caught& stream, const std::string& text) {
        return stream.all.find(text) != std::string::npos;
    }
    Caught out;
    Caught err;
};

TEST_F(App, AToolGetsItsOptions) {
    EXPECT_EQ(
        trocar({"toy", "m", "--json", "--cut=Conv", "--input", "a=1", "--input", "b=[1,2]", "n1",
                "n2", "--top", "-3", "--limit", "1e-3", "--deep", "--seed", "9", "--threads", "2"}),
        0)
        << err.all;
    EXPECT_TRUE(says(out, R"({"model":"m","more":["n1","n2"],"how":"fine","cut":"Conv",)"
                          R"("inputs":["a=1","b=[1,2]"],"top":-3,"limit":0.001,"deep":true,)"
                          R"("seed":9,"threads":2})"))
        << out.all;
    EXPECT_TRUE(says(out, R"("seed":9,"host")"));
}

TEST_F(App, CommonOptionsMayStandBeforeTheTool) {
    EXPECT_EQ(trocar({"--seed", "4", "-q", "--json", "toy", "m"}), 0);
    EXPECT_TRUE(says(out, "\"seed\":4"));
    EXPECT_EQ(err.all, "");
}

TEST_F(App, ValuesAreTakenAsTheyAre) {
    EXPECT_EQ(trocar({"toy", "--json", "-c", "!Conv", "--", "--odd name"}), 0) << err.all;
    EXPECT_TRUE(says(out, R"("model":"--odd name")")) << out.all;
    EXPECT_TRUE(says(out, R"("cut":"!Conv")"));
    EXPECT_EQ(trocar({"toy", "m", "--json", "--top", "1", "--top", "2", "--input=-x"}), 0)
        << err.all;
    EXPECT_TRUE(says(out, R"("inputs":["-x"],"top":2)")) << out.all;
}

TEST_F(App, ExitCodesSayWhatHappened) {
    EXPECT_EQ(trocar({"toy", "m"}), 0);
    EXPECT_EQ(trocar({"toy", "no"}), 1);
    EXPECT_EQ(trocar({"toy"}), 2);
    EXPECT_EQ(trocar({"toy", "engine"}), 4);
    EXPECT_EQ(err.all, "trocar: the engine broke\n  hint: mend it\n");
    EXPECT_EQ(trocar({"toy", "bug"}), 70);
    EXPECT_TRUE(says(err, "this is a bug in trocar"));
    EXPECT_EQ(trocar({"toy", "memory"}), 70);
    EXPECT_EQ(err.all, "trocar: there is not enough memory for this\n");
}

TEST_F(App, ResultsGoToStandardOutputAndTheRestToStandardError) {
    EXPECT_EQ(trocar({"toy", "m"}), 0);
    EXPECT_EQ(err.all, "trocar: warning: a warning\ntrocar: warning: take care\n");
    EXPECT_FALSE(says(out, "take care"));
    EXPECT_EQ(trocar({"toy", "m", "-v"}), 0);
    EXPECT_TRUE(says(err, "trocar: an info\n"));
    EXPECT_TRUE(says(out, "Context\n"));
    EXPECT_EQ(trocar({"toy", "m", "-q"}), 0);
    EXPECT_EQ(out.all + err.all, "");
    EXPECT_EQ(trocar({"toy", "m", "-q", "--report", "-"}), 0);
    EXPECT_TRUE(says(out, "Options\n"));
}

TEST_F(App, ABrokenPipeIsNoFailure) {
    out.broken = true;
    EXPECT_EQ(trocar({"toy", "m"}), 0);
    EXPECT_EQ(trocar({"--help"}), 0);
    err.broken = true;
    EXPECT_EQ(trocar({"toy"}), 70);
}

TEST_F(App, UsageErrorsNameTheThingAndTheNextStep) {
    const auto complaint = [&](const std::vector<std::string>& arguments) {
        EXPECT_EQ(trocar(arguments), 2);
        EXPECT_EQ(out.all, "");
        return err.all;
    };
    EXPECT_EQ(complaint({"tyo"}),
              "trocar: no tool named 'tyo'\n"
              "  hint: did you mean 'toy'? `trocar --help` lists all tools\n");
    EXPECT_EQ(complaint({"toy", "m", "--inptu", "x"}),
              "trocar: toy has no option '--inptu'\n"
              "  hint: did you mean '--input'? `trocar toy --help` lists the options\n");
    EXPECT_EQ(complaint({"toy", "m", "--how=bad"}),
              "trocar: --how cannot be 'bad'\n"
              "  hint: did you mean 'badly'? one of: fine, badly\n");
    EXPECT_EQ(complaint({"toy", "m", "--top", "3x"}),
              "trocar: --top takes a whole number, not '3x'\n");
    EXPECT_EQ(complaint({"toy", "m", "--top", "99999999999999999999"}),
              "trocar: --top 99999999999999999999 is out of range\n");
    EXPECT_EQ(complaint({"toy", "m", "--cut"}),
              "trocar: --cut needs a value\n  hint: --cut SELECTOR: Where to cut\n");
    EXPECT_EQ(complaint({"toy", "m", "--cut", "--deep"}),
              "trocar: --cut needs a value\n  hint: --cut SELECTOR: Where to cut\n");
    EXPECT_EQ(
        complaint({"toy"}),
        "trocar: toy needs MODEL: Model file\n  hint: `trocar toy --help` lists the options\n");
    EXPECT_EQ(complaint({"needy", "a", "b"}),
              "trocar: needy needs --to TENSOR\n  hint: Where the part ends\n");
    EXPECT_EQ(complaint({"toy", "m", "-q", "-v"}),
              "trocar: --quiet and --verbose contradict each other\n");
    EXPECT_NE(complaint({"toy", "m", "--json=maybe"}), "");
}

TEST_F(App, PositionalsLeaveEnoughForThoseAfter) {
    EXPECT_EQ(trocar({"needy", "a", "b", "c", "out", "--to", "x"}), 0);
    EXPECT_EQ(out.all, "a+c>out\n");
    EXPECT_EQ(trocar({"needy", "a", "--to", "x"}), 2);
}

TEST_F(App, ReportsGoToFilesByTheirSuffix) {
    const TestFolder folder;
    const auto file = [&](const char* name) { return (folder / name).string(); };
    EXPECT_EQ(trocar({"toy", "m", "-q", "--report", file("r.json"), "--report", file("r.md"),
                      "--report", file("r.csv"), "--report", file("r.txt")}),
              0)
        << err.all;
    EXPECT_TRUE(read_file(file("r.json")).starts_with("{\n  \"schema\""));
    EXPECT_TRUE(read_file(file("r.md")).starts_with("# trocar toy\n"));
    EXPECT_TRUE(read_file(file("r.csv")).starts_with("section,key,value\n"));
    EXPECT_TRUE(read_file(file("r.txt")).starts_with("Context\n"));
    EXPECT_NE(read_file(file("r.txt")).find("warning: take care"), std::string::npos);

    EXPECT_EQ(trocar({"toy", "m", "--report", file("r.pdf")}), 2);
    EXPECT_EQ(trocar({"toy", "m", "--report", file("no/r.json")}), 3);
    // One that cannot be written does not keep the others from being written.
    std::filesystem::create_directory(folder / "dir.json");
    EXPECT_EQ(trocar({"toy", "m", "--report", file("dir.json"), "--report", file("s.json")}), 3);
    EXPECT_TRUE(says(out, "Options\n"));
    EXPECT_TRUE(std::filesystem::exists(folder / "s.json"));
}

TEST_F(App, HelpComesBeforeComplaints) {
    EXPECT_EQ(trocar({"toy", "--nonsense", "-h"}), 0);
    EXPECT_TRUE(says(out, "Usage: trocar toy MODEL [MORE...] [options]\n")) << out.all;
    EXPECT_TRUE(says(out, "-c, --cut SELECTOR"));
    EXPECT_EQ(trocar({"toy", "--help"}), 0);
    EXPECT_TRUE(says(out, "  $ trocar toy fine.onnx\n      all of it\n")) << out.all;
    EXPECT_TRUE(says(out, "Where to cut (default none)"));
    EXPECT_TRUE(says(out, "(may be repeated)"));
    EXPECT_EQ(trocar({"help", "toy"}), 0);
    EXPECT_TRUE(says(out, "trocar toy: Play with a model"));
    EXPECT_EQ(trocar({"-h"}), 0);
    EXPECT_TRUE(says(out, "  toy         Play with a model\n")) << out.all;
    EXPECT_EQ(trocar({}), 2);
    EXPECT_TRUE(says(err, "Usage: trocar TOOL MODEL [options]"));
}

TEST_F(App, ToolsMayHaveCommands) {
    EXPECT_EQ(trocar({"game", "again", "a", "b", "c", "--to", "t"}), 0);
    EXPECT_TRUE(says(out, "a+b>c")) << out.all;
    EXPECT_EQ(trocar({"game", "--seed", "3", "again", "a", "b", "--to=t"}), 0);
    EXPECT_EQ(trocar({"game", "schema", "--json"}), 0);
    EXPECT_EQ(out.all, "{}\n");
    EXPECT_EQ(trocar({"game", "m.onnx"}), 0);
    EXPECT_TRUE(says(out, "m.onnx"));
    EXPECT_EQ(trocar({"game", "--cut", "again", "m.onnx"}), 0);
    EXPECT_TRUE(says(out, "cut      again")) << out.all;
    EXPECT_EQ(trocar({"game", "again"}), 2);
    EXPECT_TRUE(says(err, "game again needs --to TENSOR")) << err.all;
    EXPECT_EQ(trocar({"idle", "schema"}), 0);
}

TEST_F(App, CommandsOfToolsAreExplained) {
    EXPECT_EQ(trocar({"game", "agian"}), 2);
    EXPECT_TRUE(says(err, "game has no command 'agian', and there is no such file")) << err.all;
    EXPECT_TRUE(says(err, "did you mean 'again'? `trocar game --help` lists the commands"));
    EXPECT_EQ(trocar({"idle"}), 2);
    EXPECT_TRUE(says(err, "idle needs a command"));
    EXPECT_EQ(trocar({"idle", "xyzzy"}), 2);
    EXPECT_TRUE(says(err, "idle has no command 'xyzzy'\n")) << err.all;
    EXPECT_EQ(trocar({"game", "--help"}), 0);
    EXPECT_TRUE(says(out, "  again       Play again\n")) << out.all;
    EXPECT_TRUE(says(out, "--cut"));
    EXPECT_EQ(trocar({"idle", "-h"}), 0);
    EXPECT_TRUE(says(out, "Usage: trocar idle COMMAND ...\n"));
    EXPECT_FALSE(says(out, "--json"));
    EXPECT_EQ(trocar({"game", "again", "--help"}), 0);
    EXPECT_TRUE(says(out, "Usage: trocar game again MODEL... PART --to TENSOR"));
    EXPECT_EQ(trocar({"help", "game", "again"}), 0);
    EXPECT_TRUE(says(out, "trocar game again: Play again"));
    EXPECT_EQ(trocar({"help"}), 0);
    EXPECT_FALSE(says(out, "Play again")) << out.all;
    for (const auto* place : {"bash", "zsh", "fish"}) {
        EXPECT_EQ(trocar({"completion", place}), 0);
        EXPECT_TRUE(says(out, "again")) << place;
    }
    EXPECT_EQ(trocar({"man"}), 0);
    EXPECT_TRUE(says(out, "trocar game again MODEL"));
}

TEST_F(App, EveryPlaceKnowsEveryOption) {
    for (const auto* place : {"bash", "zsh", "fish"}) {
        EXPECT_EQ(trocar({"completion", place}), 0);
        EXPECT_TRUE(says(out, "limit")) << place;
        EXPECT_TRUE(says(out, "badly")) << place;
    }
    EXPECT_EQ(trocar({"man"}), 0);
    EXPECT_TRUE(says(out, "\\fB\\-c\\fR, \\fB\\-\\-cut\\fR \\fISELECTOR\\fR")) << out.all;
    EXPECT_TRUE(says(out, ".SH EXIT STATUS"));
}

// Last: the flag stays set for the process.
TEST_F(App, ZzInterruptedWorkWritesItsPartialReport) {
    catch_signals();
    std::raise(SIGINT);
    EXPECT_EQ(trocar({"toy", "m", "--json"}), 130);
    EXPECT_TRUE(says(out, "\"partial\": true"));
}

}  // namespace
}  // namespace trocar::cli
