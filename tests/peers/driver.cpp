// Holds Trocar against the backend tests of the `onnx` package: each model is read and written back
// as the same bytes, run whole, and run cut at every op.
//
//     peers_driver build/peers tests/peers/onnxruntime-1.31.1.txt tests/peers/cut-onnxruntime.txt
//     onnxruntime:PATH [GLOB]
//     peers_driver --outcome build/peers ENGINE [GLOB]
//
// The second form runs the cases whole, and prints those that fail with their reasons: a list as
// the first one takes it.
//
// Cases run in a child process, so that one that crashes is a line and not the end.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "base/json.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/session.h"
#include "util/elements.h"
#include "util/files.h"

namespace trocar {
namespace {

namespace fs = std::filesystem;

struct Case {
    std::string name;  // KIND/CASE
    fs::path folder;
    double rtol;
    double atol;
};

std::vector<Case> read_index(const fs::path& root) {
    const auto index = Json::parse_or_throw(read_file(root / "index.json"));
    std::vector<Case> cases;
    for (const auto& row : index.at("cases")) {
        const auto kind = row.at("kind").string();
        const auto name = row.at("name").string();
        cases.push_back({fmt::format("{}/{}", kind, name), root / kind / name,
                         row.at("rtol").number(), row.at("atol").number()});
    }
    return cases;
}

using Known = std::map<std::string, std::string>;  // case, reason

Known read_known(const fs::path& path) {
    Known known;
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
        const auto tab = line.find('\t');
        if (!line.empty() && line[0] != '#' && tab != std::string::npos) {
            known[line.substr(0, tab)] = line.substr(tab + 1);
        }
    }
    return known;
}

// Empty, or how the actual value differs beyond the suite's tolerances.
std::string difference(const Value& expected, const Value& actual, const Case& test) {
    if (expected.kind() != actual.kind()) {
        return fmt::format("{} instead of {}", value_text(actual), value_text(expected));
    }
    if (!expected.is_tensor()) {
        const auto left = expected.items();
        const auto right = actual.items();
        if (left.size() != right.size()) {
            return "wrong length";
        }
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (auto fault = difference(left[i], right[i], test); !fault.empty()) {
                return fault;
            }
        }
        return {};
    }
    if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape()) {
        return fmt::format("{} instead of {}", value_text(actual), value_text(expected));
    }
    if (expected.dtype() == DType::string) {
        return expected.string_values() == actual.string_values() ? "" : "wrong texts";
    }
    const auto count = number_count(expected.dtype(), expected.element_count());
    std::vector<double> left(count);
    std::vector<double> right(count);
    decode(expected.dtype(), expected.bytes(), 0, left);
    decode(actual.dtype(), actual.bytes(), 0, right);
    const auto rtol = expected.dtype() == DType::bf16 ? std::max(test.rtol, 0x1p-6) : test.rtol;
    for (std::size_t i = 0; i < count; ++i) {
        const bool same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]));
        if (!same && !(std::abs(left[i] - right[i]) <= test.atol + rtol * std::abs(left[i]))) {
            return fmt::format("element {} is {} instead of {}", i, right[i], left[i]);
        }
    }
    return {};
}

std::vector<Value> read_set(const fs::path& folder, const char* stem) {
    std::vector<Value> values;
    for (std::size_t i = 0;; ++i) {
        const auto path = folder / fmt::format("{}_{}.pb", stem, i);
        if (!fs::exists(path)) {
            return values;
        }
        const auto found = load_values(path);
        values.push_back(found.empty() ? Value{} : found.front().value);
    }
}

// Empty, or why the case fails.
std::string run_case(const Case& test, const Model& model, const std::shared_ptr<Engine>& engine,
                     const Selector& cut, Tool* tool = nullptr) {
    SessionOptions options;
    options.cut = cut;
    if (tool != nullptr) {
        options.tools = {tool};
    }
    Session session(model, engine, options);
    for (int set = 0;; ++set) {
        const auto folder = test.folder / fmt::format("test_data_set_{}", set);
        if (!fs::exists(folder)) {
            return {};
        }
        const auto inputs = read_set(folder, "input");
        const auto expected = read_set(folder, "output");
        std::vector<TensorId> slots;
        const auto required = session.required_inputs();
        const auto all = model.graph.inputs();
        slots.assign(all.begin(), all.end());
        if (required.size() == inputs.size()) {
            slots = required;
        }
        std::vector<NamedValue> given;
        for (std::size_t i = 0; i < inputs.size() && i < slots.size(); ++i) {
            given.push_back({model.graph.tensor(slots[i]).name, inputs[i]});
        }
        const auto actual = session.run(given);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const auto& declared = model.graph.tensor(model.graph.outputs()[i]).type;
            const auto wanted = fit_optional(expected[i], declared);
            if (auto fault = difference(wanted, actual.at(i).value, test); !fault.empty()) {
                return fmt::format("output {}: {}", i, fault);
            }
        }
    }
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n')).substr(0, 300);
}

// What a case should come to.
struct Expected {
    bool runs = true;
    bool runs_cut = true;
    bool exact = false;  // a case that does not run must not pass either
    bool only_whole = false;
};

// Lines "WHAT<tab>REASON": an empty reason is a pass.
void check_case(const Case& test, const std::shared_ptr<Engine>& engine, const fs::path& scratch,
                const Expected& expected, std::FILE* out) {
    const auto tell = [&](const char* what, const std::function<std::string()>& work) {
        std::fprintf(out, "start\t%s\n", what);
        std::fflush(out);
        std::string reason;
        try {
            reason = work();
        } catch (const Error& e) {
            reason = e.what();
        } catch (const std::exception& e) {
            reason = fmt::format("INTERNAL {}", e.what());
        }
        std::fprintf(out, "%s\t%s\n", what, first_line(reason).c_str());
        std::fflush(out);
    };
    std::optional<Model> model;
    tell("read", [&] {
        model = load(test.folder / "model.onnx");
        const auto problems = model->graph.verify();
        return problems.empty() ? std::string{} : problems[0].where + ": " + problems[0].what;
    });
    if (!model) {
        return;
    }
    tell("write", [&] {
        save(*model, scratch / "copy.onnx");
        return read_file(scratch / "copy.onnx") == read_file(test.folder / "model.onnx")
                   ? std::string{}
                   : "other bytes";
    });
    tell("extract", [&] {
        // All of it, taken apart and put together: still what it was for the engine.
        std::vector<OpId> ops(model->graph.ops().begin(), model->graph.ops().end());
        const auto part = extract_ops(*model, ops, model->graph.outputs());
        const auto problems = part.graph.verify();
        return problems.empty() ? std::string{} : problems[0].where + ": " + problems[0].what;
    });
    // A case that the engine alone does not pass must still end in a sentence, or in another
    // result.
    const auto run = [&](const Selector& cut, bool must_pass, Tool* tool = nullptr) {
        auto reason = std::string{};
        try {
            reason = run_case(test, *model, engine, cut, tool);
        } catch (const Error& e) {
            reason = e.what();
        }
        return must_pass ? reason : std::string{};
    };
    const bool runs_cut = expected.runs && expected.runs_cut;
    tell("whole", [&] {
        const auto reason = run({}, expected.runs || expected.exact);
        if (expected.runs || !expected.exact) {
            return reason;
        }
        return reason.empty() ? std::string("passes, but is listed") : std::string{};
    });
    if (expected.only_whole) {
        return;
    }
    tell("cut", [&] { return run(every_op(), runs_cut); });
    if (!engine->info().can.host_calls) {
        return;  // there are no taps: ports are cuts
    }
    // At every op somebody looks at what it wrote, and somebody writes it back.
    tell("tapped", [&] {
        Tool tool;
        tool.after(every_op(), [](const Port& port) {
            for (std::size_t i = 0; i < port.output_count(); ++i) {
                if (port.op().outputs[i] != TensorId::none) {
                    value_text(port.output(i));
                }
            }
        });
        tool.after(every_op(), [](Port& port) {
            for (std::size_t i = 0; i < port.output_count(); ++i) {
                if (port.op().outputs[i] != TensorId::none && port.output(i).is_tensor() &&
                    bits(port.output(i).dtype()) != 0) {
                    port.writable_output(i);
                }
            }
        });
        return run({}, runs_cut, &tool);
    });
}

struct Tally {
    std::size_t passed = 0;
    std::vector<std::string> failures;
};

// Runs cases from `first` on in a child; returns where to go on.
std::size_t run_child(const std::vector<Case>& cases, std::size_t first, const Known& known,
                      const Known& known_cut, const EngineOptions& options, bool only_whole,
                      const fs::path& scratch, Tally& tally) {
    int ends[2];
    if (::pipe(ends) != 0) {
        throw Error(Fault::internal, "no pipe");
    }
    const auto child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        std::FILE* out = ::fdopen(ends[1], "w");
        const auto engine = open_engine(options);
        for (std::size_t i = first; i < cases.size(); ++i) {
            std::fprintf(out, "case\t%zu\n", i);
            check_case(cases[i], engine, scratch,
                       {!known.contains(cases[i].name), !known_cut.contains(cases[i].name),
                        options.name == "reference", only_whole},
                       out);
        }
        std::fflush(out);
        ::_exit(0);
    }
    ::close(ends[1]);
    std::FILE* in = ::fdopen(ends[0], "r");
    std::size_t at = first;
    std::string doing;
    char* line = nullptr;
    std::size_t room = 0;
    while (::getline(&line, &room, in) > 0) {
        std::string text(line);
        text.pop_back();
        const auto tab = text.find('\t');
        const auto what = text.substr(0, tab);
        const auto rest = text.substr(tab + 1);
        if (what == "case") {
            at = std::stoul(rest);
        } else if (what == "start") {
            doing = rest;
        } else if (rest.empty()) {
            ++tally.passed;
            doing.clear();
        } else {
            tally.failures.push_back(fmt::format("{}\t{}\t{}", cases[at].name, what, rest));
            doing.clear();
        }
    }
    std::free(line);
    std::fclose(in);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return cases.size();
    }
    if (known.contains(cases[at].name)) {
        fmt::print("note: the engine crashed on {} ({}), which it does alone too\n", cases[at].name,
                   doing);
    } else {
        tally.failures.push_back(fmt::format("{}\t{}\tcrashed", cases[at].name, doing));
    }
    return at + 1;
}

// The reason without the op that gives it: "op 3 (Conv 'x'): …", "…: op 3 (Conv 'x')".
std::string plain(const std::string& reason) {
    const auto end = reason.find("): ");
    if (reason.starts_with("op ") && end != std::string::npos) {
        return reason.substr(end + 3);
    }
    return reason.substr(0, reason.find(": op "));
}

int list_outcomes(const std::vector<Case>& cases, const std::shared_ptr<Engine>& engine) {
    std::size_t passed = 0;
    fmt::print(
        "# Backend tests that the engine {} does not pass. Written by peers_driver --outcome.\n",
        engine->info().name);
    for (const auto& test : cases) {
        std::string reason;
        try {
            reason = plain(run_case(test, load(test.folder / "model.onnx"), engine, {}));
        } catch (const Error& e) {
            reason = plain(e.what());
        }
        passed += reason.empty() ? 1 : 0;
        if (!reason.empty()) {
            fmt::print("{}\t{}\n", test.name, first_line(reason));
        }
    }
    fmt::print(stderr, "{} of {} cases passed\n", passed, cases.size());
    return 0;
}

int drive(int argc, char** argv) {
    const bool outcome = argc > 1 && std::string_view(argv[1]) == "--outcome";
    if (outcome && argc >= 4) {
        auto listed = read_index(argv[2]);
        if (argc > 4) {
            std::erase_if(listed, [&](const Case& c) { return !glob_match(argv[4], c.name); });
        }
        return list_outcomes(listed, open_engine(parse_engine(argv[3])));
    }
    if (argc < 5 || outcome) {
        fmt::print(stderr,
                   "usage: peers_driver CASES KNOWN KNOWN_CUT ENGINE [GLOB [whole]]\n"
                   "       peers_driver --outcome CASES ENGINE [GLOB]\n");
        return 2;
    }
    auto cases = read_index(argv[1]);
    const auto known = read_known(argv[2]);
    const auto known_cut = read_known(argv[3]);
    if (argc > 5) {
        std::erase_if(cases, [&](const Case& c) { return !glob_match(argv[5], c.name); });
    }
    auto options = parse_engine(argv[4]);
    options.threads = 1;
    const bool only_whole = argc > 6 && std::string_view(argv[6]) == "whole";
    const auto scratch = fs::temp_directory_path() / fmt::format("trocar-peers-{}", ::getpid());
    fs::create_directories(scratch);
    Tally tally;
    for (std::size_t at = 0; at < cases.size();) {
        at = run_child(cases, at, known, known_cut, options, only_whole, scratch, tally);
    }
    fs::remove_all(scratch);
    for (const auto& failure : tally.failures) {
        fmt::print("FAILED\t{}\n", failure);
    }
    fmt::print("{} cases, of which {} alone does not pass {}\n", cases.size(), options.name,
               known.size());
    fmt::print("{} passed, {} failed\n", tally.passed, tally.failures.size());
    return tally.failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    try {
        return trocar::drive(argc, argv);
    } catch (const std::exception& e) {
        fmt::print(stderr, "peers_driver: {}\n", e.what());
        return 70;
    }
}
