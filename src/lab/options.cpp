#include <fmt/format.h>

#include <cmath>

#include "trocar/error.h"
#include "trocar/lab_options.h"
#include "util/text.h"

namespace trocar {

void declare_part_options(Args& args, PartArguments& arguments) {
    args.choice("--by", arguments.by, "op|module|segment",
                "What a layer is: each op; the ops of a module; what lies between cuts");
    args.option("--cut", arguments.cut, "SELECTOR",
                "With --by segment: a layer ends after these ops");
    args.option("--depth", arguments.depth, "N",
                "With --by module: levels of the module path that count; 0: all");
}

Chain make_chain(const Model& model, const PartArguments& arguments) {
    if (arguments.depth < 0) {
        throw Error(Fault::usage, "--depth must not be negative");
    }
    return Chain(model, arguments.by == "module" ? Chain::Order::modules : Chain::Order::graph,
                 static_cast<std::size_t>(arguments.depth));
}

PartsOptions parts_options(const Model& model, const PartArguments& arguments) {
    PartsOptions options;
    options.by = arguments.by == "module"    ? PartsOptions::By::module
                 : arguments.by == "segment" ? PartsOptions::By::segment
                                             : PartsOptions::By::op;
    if (options.by == PartsOptions::By::segment) {
        if (arguments.cut.empty()) {
            throw Error(Fault::usage, "--by segment needs --cut",
                        "--cut 'Add' ends a layer after each Add");
        }
        options.cut = parse_selector(arguments.cut);
        select_some(model.graph, options.cut, "--cut");
    } else if (!arguments.cut.empty()) {
        throw Error(Fault::usage, "--cut goes with --by segment");
    }
    return options;
}

void declare_set_options(Args& args, SetArguments& arguments) {
    declare_input_options(args, arguments.inputs);
    args.option("--samples", arguments.samples, "N",
                "Sets of inputs, where they are generated; 1 by default");
}

std::vector<std::vector<NamedValue>> make_sets(const Model& model, const SetArguments& arguments,
                                               std::uint64_t seed,
                                               std::vector<std::string>& notes) {
    if (arguments.samples < 1 || arguments.samples > 10000) {
        throw Error(Fault::usage, "--samples must be between 1 and 10000");
    }
    auto spec = arguments.inputs;
    spec.seed = seed;
    if (spec.fill.empty()) {
        spec.fill = "random";
    }
    if (!spec.unknown_dims) {
        spec.unknown_dims = 1;
    }
    std::vector<std::vector<NamedValue>> sets;
    for (std::int64_t i = 0; i < arguments.samples; ++i) {
        auto inputs = make_inputs(model, spec);
        if (i == 0) {
            for (std::size_t k = 0; k < inputs.values.size(); ++k) {
                notes.push_back(fmt::format("input '{}': {}, {}", inputs.values[k].name,
                                            value_text(inputs.values[k].value), inputs.origins[k]));
            }
            notes.insert(notes.end(), inputs.notes.begin(), inputs.notes.end());
        }
        sets.push_back(std::move(inputs.values));
        ++spec.seed;
    }
    return sets;
}

void declare_judge_options(Args& args, JudgeArguments& arguments) {
    args.option("--rtol", arguments.rtol, "NUMBER",
                "Relative tolerance: |b − a| ≤ atol + rtol·|a|; when neither is given, from the "
                "type of the tensor and the length of the sums");
    args.option("--atol", arguments.atol, "NUMBER", "Absolute tolerance");
    args.option("--tolerance", arguments.rules, "GLOB=RTOL[,ATOL]",
                "For layers whose type, name or module, or tensors whose name matches");
    args.option("--warn", arguments.warn, "FACTOR",
                "Beyond the tolerance by less than this is WARN, not FAIL; 8 by default, 1 with "
                "--rtol or --atol");
}

Judging judging_of(const JudgeArguments& arguments) {
    Judging judging;
    const auto given = [](double number) { return number != -1; };
    for (const auto& [number, what] :
         {std::pair{arguments.rtol, "--rtol"}, std::pair{arguments.atol, "--atol"}}) {
        if (given(number) && !(number >= 0)) {
            throw Error(Fault::usage, fmt::format("{} takes a number from 0 on", what));
        }
    }
    if (given(arguments.rtol)) {
        judging.rtol = arguments.rtol;
    }
    if (given(arguments.atol)) {
        judging.atol = arguments.atol;
    }
    if (given(arguments.warn) && !(arguments.warn >= 1)) {
        throw Error(Fault::usage, "--warn takes a number from 1 on");
    }
    judging.warn = given(arguments.warn)          ? arguments.warn
                   : judging.rtol || judging.atol ? 1
                                                  : judging.warn;
    for (const auto& rule : arguments.rules) {
        judging.rules.push_back(parse_tolerance_rule(rule));
    }
    return judging;
}

void declare_limit_options(Args& args, LimitArguments& arguments) {
    args.option("--time-limit", arguments.seconds, "SECONDS",
                "For one layer: what takes longer is ended and counts as hung");
    args.option("--memory-limit", arguments.memory, "SIZE",
                "Memory of the process that runs a layer, as in 2G: what takes more is ended");
}

void set_limits(SideOptions& side, const LimitArguments& arguments) {
    if (!(arguments.seconds >= 0) || arguments.seconds > 1e6) {
        throw Error(Fault::usage, "--time-limit takes a number of seconds");
    }
    side.time_limit = std::chrono::milliseconds(std::llround(arguments.seconds * 1000));
    if (!arguments.memory.empty()) {
        const auto size = parse_size(arguments.memory);
        if (!size) {
            throw Error(Fault::usage, fmt::format("'{}' is no size", arguments.memory),
                        "write 512M or 4G");
        }
        side.memory_limit = *size;
    }
}

}  // namespace trocar
