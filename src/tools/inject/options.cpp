#include "tools/inject/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "tools/inject/prepare.h"
#include "trocar/error.h"
#include "trocar/preprocess.h"
#include "util/text.h"

namespace trocar::inject {

void declare(Args& args, CampaignArguments& a) {
    args.positional(a.subject, "MODEL|CAMPAIGN",
                    "Model to inject faults into, or a campaign file (.yaml) that says it all");
    args.option("--target", a.targets, "WHAT",
                "Where faults go: weights, activations, reads (what one op sees alone), inputs or "
                "constants; several with commas");
    args.option("--at", a.at, "SELECTOR", "The ops whose outputs or constants these are; all");
    args.option("--bits", a.bits, "BITS",
                "Bits that may change: 30, 23-30, sign, exponent, mantissa");
    args.option("--model", a.effect, "EFFECT",
                "What a fault does: bitflip, stuck0, stuck1, zero, 'set V', 'add V', 'multiply V', "
                "'random LOW HIGH', 'noise SD', 'gain SD', 'rate P' (every bit with that chance)");
    args.option("--faults", a.trials, "N", "Trials to draw (1000)");
    args.option("--store", a.store, "FILE", "Where results go; without it they are only reported");
    args.section("Inputs");
    declare_data_options(args, a.data);
    declare_input_options(args, a.inputs);
    args.option("--inputs-per-fault", a.inputs_per_fault, "N",
                "Inputs drawn for each trial; 0 tries all");
    args.flag("--only-correct", a.only_correct,
              "Only inputs that the model gets right without faults");
    args.section("Which faults");
    args.option("--tensor", a.tensors, "GLOB", "Only tensors of that name");
    args.option("--elements", a.elements, "[INDEX]",
                "Only these elements of a tensor: [0,2:4] takes rows 2 and 3 of the first");
    args.option("--burst", a.bits_at_once, "N", "Neighbouring bits that change together");
    args.choice("--extent", a.extent, "element|row|channel|tensor",
                "What changes together: an element, its row, channel or kernel, or the tensor");
    args.flag("--all-readers", a.all_readers,
              "A constant that several ops read changes for all of them, not for one");
    args.option("--together", a.together, "N", "Faults in each trial");
    args.option("--fault", a.faults, "FAULT",
                "A given fault, as `trocar inject replay` prints it, instead of random ones");
    args.option("--faults-from", a.faults_from, "FILE", "A file with a trial on each line");
    args.section("How many");
    args.flag("--exhaustive", a.exhaustive, "Every fault there is, once");
    args.option("--margin", a.margin, "SHARE",
                "As many trials as a rate to ± this needs; 0.01 is a point");
    args.option("--confidence", a.confidence, "SHARE",
                "Confidence of that, and of all intervals (default 0.95)");
    args.option("--per", a.per, "WHAT", "Strata, drawn each on its own: layer, bit, target");
    args.choice("--allocation", a.allocation, "proportional|equal|data-aware",
                "How trials go to strata: by size, evenly, or more where outcomes vary most");
    args.option("--importance", a.importance, "WHAT=FACTOR",
                "Draw faults so much more often: bits:23-30=10, layer:/conv1/*=5; rates are "
                "weighted for it");
    args.option("--stop-at", a.stop_at, "SHARE",
                "Stop when the SDC rate is known to ± this, after a block of trials");
    args.section("What is measured");
    args.flag("--nan-everywhere", a.nan_everywhere,
              "Watch every tensor for NaN and infinity, not only outputs");
    args.choice(
        "--ranges", a.ranges, "off|observe|clip",
        "Ranges that tensors have without faults: note when they are left, or clip to them");
    args.flag("--layers", a.layers, "Keep what each fault did to every tensor on its way");
    args.option("--decision", a.decision, "WHAT",
                "What counts as SDC: scores[:OUTPUT[:AXIS]], equal[:OUTPUT], topk:K[:OUTPUT], "
                "error:LIMIT[:OUTPUT], none (default auto: from the outputs)");
    args.option("--postprocess", a.postprocess, "COMMAND",
                "What makes of outputs that from which decisions are taken");
    args.option("--metric", a.metric, "COMMAND",
                "What measures a faulty output: one number, or several with names");
    args.option("--tool", a.tools, "LIB[,K=V…]",
                "A tool library that prepares inputs, does post-processing, or measures");
    args.option("--answer-limit", a.answer_limit, "SECONDS",
                "Without an answer of these commands for so long a run is a hang (100 times what "
                "the first took, and 60 s at least)");
    args.section("How they are run");
    args.choice(
        "--view", a.view, "auto|deployed|source",
        "The model as the engine runs it, fused, or op by op as in the file; auto: deployed "
        "where the engine has that view, else source");
    args.option("--workers", a.workers, "N", "Trials that run at the same time; one per thread");
    args.option("--memory", a.memory, "SIZE", "Memory for tensors: 512M, 4G (2G)");
    args.flag("--no-isolate", a.not_isolated,
              "Run the engine in this process: a fault that crashes it ends the campaign");
    args.option("--time-limit", a.time_limit, "SECONDS",
                "A trial that takes longer is a hang (100 golden runs, and 10 s at least)");
    args.option("--audit", a.audit, "SHARE",
                "Repeat this share of all runs by brute force, and fail on the first difference: "
                "0.01 or 1%");
    args.option(
        "--without", a.without, "WHAT",
        "Switch an acceleration off: prefix, dead, region, channels, screen, twins, batch or "
        "all");
}

namespace {

std::vector<std::string> words(const std::vector<std::string>& given) {
    std::vector<std::string> all;
    for (const auto& item : given) {
        for (auto& word : split(item, ',')) {
            all.push_back(std::move(word));
        }
    }
    return all;
}

template <class T>
T chosen(const std::string& word, const char* option,
         const std::vector<std::pair<const char*, T>>& choices) {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
        if (word == name) {
            return value;
        }
        names.emplace_back(name);
    }
    const auto near = did_you_mean(word, names);
    throw Error(Fault::usage, fmt::format("{} takes {}, not '{}'", option, join(names, ", "), word),
                near);
}

std::uint64_t size_of(const std::string& text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto unit =
        std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const double scale = unit == "K" || unit == "k"   ? 1 << 10
                         : unit == "M" || unit == "m" ? 1 << 20
                         : unit == "G" || unit == "g" ? 1 << 30
                         : unit.empty()               ? 1
                                                      : 0;
    if (error != std::errc() || !(number > 0) || scale == 0) {
        throw Error(Fault::usage, fmt::format("'{}' is no size", text), "write 512M or 4G");
    }
    return static_cast<std::uint64_t>(number * scale);
}

void switch_off(Accelerate& accelerate, const std::string& word) {
    const bool all = word == "all";
    const auto off = chosen<int>(word, "--without",
                                 {{"prefix", 0},
                                  {"dead", 1},
                                  {"region", 2},
                                  {"channels", 3},
                                  {"screen", 4},
                                  {"twins", 5},
                                  {"batch", 6},
                                  {"all", 7}});
    accelerate.prefix = accelerate.prefix && off != 0 && !all;
    accelerate.dead = accelerate.dead && off != 1 && !all;
    accelerate.region = accelerate.region && off != 2 && !all;
    accelerate.channels = accelerate.channels && off != 3 && !all;
    accelerate.screen = accelerate.screen && off != 4 && !all;
    accelerate.twins = accelerate.twins && off != 5 && !all;
    if (off == 6 || all) {
        accelerate.batch = 1;
    }
}

Elements parse_elements(const std::string& text) {
    return parse_faults("x " + text + " zero").front().elements;
}

std::vector<Population> populations_of(const CampaignArguments& a) {
    using Target = Population::Target;
    using Extent = Population::Extent;
    std::vector<Population> populations;
    for (const auto& word :
         words(a.targets.empty() ? std::vector<std::string>{"weights"} : a.targets)) {
        Population p;
        p.target = chosen<Target>(word, "--target",
                                  {{"weights", Target::weights},
                                   {"activations", Target::activations},
                                   {"reads", Target::reads},
                                   {"inputs", Target::inputs},
                                   {"constants", Target::constants}});
        if (!a.at.empty()) {
            p.ops = parse_selector(a.at);
        }
        p.tensors = a.tensors;
        if (!a.elements.empty()) {
            p.elements = parse_elements(a.elements);
        }
        if (!a.effect.empty()) {
            p.effect = parse_effect(a.effect);
        }
        if (!a.bits.empty()) {
            p.bits = a.bits;
        }
        if (!a.extent.empty()) {
            p.extent = chosen<Extent>(a.extent, "--extent",
                                      {{"element", Extent::element},
                                       {"row", Extent::row},
                                       {"channel", Extent::channel},
                                       {"tensor", Extent::tensor}});
        }
        p.bits_at_once = static_cast<int>(std::max<std::int64_t>(a.bits_at_once, 1));
        p.all_readers = a.all_readers;
        populations.push_back(std::move(p));
    }
    return populations;
}

void take_list(const CampaignArguments& a, CampaignFile& file) {
    for (const auto& fault : a.faults) {
        file.list.push_back(parse_faults(fault));
    }
    if (a.faults_from.empty()) {
        return;
    }
    std::ifstream in(a.faults_from);
    if (!in) {
        throw Error(Fault::input, fmt::format("cannot read '{}'", a.faults_from));
    }
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (trim(line).empty() || trim(line).starts_with('#')) {
            continue;
        }
        try {
            file.list.push_back(parse_faults(trim(line)));
        } catch (const Error& e) {
            throw Error(Fault::input, fmt::format("{}:{}: {}", a.faults_from, number, e.what()),
                        e.hint());
        }
    }
    if (file.list.empty()) {
        throw Error(Fault::input, fmt::format("'{}' has no faults", a.faults_from),
                    "a fault on each line, as in: conv1.weight [3,0,1,1] flip 30");
    }
}

// Preprocessing as a campaign file has it, one step for each key, however --prep was written.
std::vector<std::pair<std::string, std::string>> steps_of(const std::vector<std::string>& given) {
    std::vector<std::pair<std::string, std::string>> steps;
    for (auto rest = preprocess_text(parse_preprocess(given)); !rest.empty();) {
        const auto at = rest.find('=');
        const auto key = rest.substr(0, at);
        // A command takes all that is left.
        const auto end = key == "command" ? rest.size() : std::min(rest.find(' ', at), rest.size());
        steps.emplace_back(key, rest.substr(at + 1, end - at - 1));
        rest.erase(0, end + 1);
    }
    return steps;
}

bool is_campaign_file(const std::string& path) {
    const auto suffix = std::filesystem::path(path).extension();
    return suffix == ".yaml" || suffix == ".yml";
}

void check_numbers(const CampaignArguments& a) {
    if (a.trials < 0 || a.together < 1 || a.inputs_per_fault < 0 || a.workers < 0 ||
        a.bits_at_once < 0 || a.bits_at_once > 64) {
        throw Error(Fault::usage,
                    "--faults, --inputs-per-fault and --workers take numbers from 0 on, --together "
                    "and --burst from 1 on");
    }
    if (a.time_limit < 0 || a.answer_limit < 0) {
        throw Error(Fault::usage, "--time-limit and --answer-limit take seconds above 0");
    }
    if (a.margin < 0 || a.confidence < 0 || a.stop_at < 0) {
        throw Error(Fault::usage, "--margin, --confidence and --stop-at take shares above 0");
    }
}

double audit_of(const std::string& text) {
    const auto share = parse_share(text);
    if (!share || *share < 0 || *share > 1) {
        throw Error(
            Fault::usage,
            fmt::format("--audit takes a share from 0 to 1, or a percentage, not '{}'", text),
            share && *share > 1 && *share <= 100 ? fmt::format("write --audit {}%", text)
                                                 : "write --audit 0.01 or --audit 1%");
    }
    return *share;
}

// What a campaign file says in its own way: there it would have no effect.
void refuse_faults_beside_file(const CampaignArguments& a) {
    const std::pair<const char*, bool> given[] = {{"--target", !a.targets.empty()},
                                                  {"--at", !a.at.empty()},
                                                  {"--bits", !a.bits.empty()},
                                                  {"--model", !a.effect.empty()},
                                                  {"--tensor", !a.tensors.empty()},
                                                  {"--elements", !a.elements.empty()},
                                                  {"--burst", a.bits_at_once > 0},
                                                  {"--extent", !a.extent.empty()},
                                                  {"--all-readers", a.all_readers},
                                                  {"--fault", !a.faults.empty()},
                                                  {"--faults-from", !a.faults_from.empty()}};
    for (const auto& [option, is] : given) {
        if (is) {
            throw Error(Fault::usage,
                        fmt::format("{} cannot be given with a campaign file: '{}' defines the "
                                    "faults",
                                    option, a.subject),
                        "change `faults:` in the file, or pass the model and all options");
        }
    }
}

// One way to say how many trials takes the place of the one that the file has.
void take_trials(const CampaignArguments& a, CampaignFile& file) {
    if (a.trials > 0 || a.exhaustive || a.margin > 0) {
        file.trials.reset();
        file.margin.reset();
        file.exhaustive = a.exhaustive;
    }
    if (a.trials > 0) {
        file.trials = static_cast<std::uint64_t>(a.trials);
    }
    if (a.margin > 0) {
        file.margin = a.margin;
    }
    if (a.confidence > 0) {
        file.confidence = a.confidence;
    }
}

}  // namespace

CampaignFile campaign_of(const CampaignArguments& a) {
    check_numbers(a);
    CampaignFile file;
    if (is_campaign_file(a.subject)) {
        refuse_faults_beside_file(a);
        file = read_campaign(a.subject);
    } else {
        file.model = a.subject;
        take_list(a, file);
        if (file.list.empty()) {
            file.populations = populations_of(a);
        }
    }
    if (!a.data.path.empty()) {
        CampaignFile::Data data;
        data.path = a.data.path;
        data.kind = a.data.kind;
        data.labels = a.data.labels;
        data.split = a.data.split;
        data.preprocess = steps_of(a.data.preprocess);
        data.offset = static_cast<std::uint64_t>(a.data.offset);
        if (a.data.limit > 0) {
            data.limit = static_cast<std::uint64_t>(a.data.limit);
        }
        file.data = std::move(data);
    }
    const bool inputs = !a.inputs.sources.empty() || !a.inputs.fill.empty();
    if (inputs && a.data.path.empty()) {
        file.data.reset();  // of the file
    } else if (!inputs && !a.data.path.empty()) {
        file.inputs.sources.clear();
        file.inputs.fill.clear();
    }
    if (inputs || !a.inputs.shapes.empty()) {
        file.inputs = a.inputs;
    }
    if (!a.view.empty()) {
        file.view = a.view == "auto" ? std::nullopt : std::optional(parse_view(a.view));
    }
    take_trials(a, file);
    for (const auto& word : words(a.per)) {
        const auto what = chosen<int>(word, "--per", {{"layer", 0}, {"bit", 1}, {"target", 2}});
        file.by_layer = file.by_layer || what == 0;
        file.by_bit = file.by_bit || what == 1;
        file.by_target = file.by_target || what == 2;
    }
    if (!a.allocation.empty()) {
        file.allocation = chosen<Allocation>(a.allocation, "--allocation",
                                             {{"proportional", Allocation::proportional},
                                              {"equal", Allocation::equal},
                                              {"data-aware", Allocation::data_aware}});
    }
    for (const auto& text : a.importance) {
        file.importance.push_back(parse_importance(text));
    }
    if (a.stop_at > 0) {
        file.stop_at = a.stop_at;
    }
    if (a.together > 1) {
        file.faults_per_trial = static_cast<int>(a.together);
    }
    if (a.inputs_per_fault > 0) {
        file.inputs_per_fault = static_cast<std::uint64_t>(a.inputs_per_fault);
    }
    file.only_correct = file.only_correct || a.only_correct;
    file.nan_everywhere = file.nan_everywhere || a.nan_everywhere;
    if (!a.ranges.empty()) {
        file.ranges = chosen<Ranges>(
            a.ranges, "--ranges",
            {{"off", Ranges::off}, {"observe", Ranges::observe}, {"clip", Ranges::clip}});
    }
    file.layer_effects = file.layer_effects || a.layers;
    if (!a.decision.empty()) {
        file.decision = parse_decision(a.decision);
    }
    if (!a.metric.empty()) {
        file.metric = a.metric;
    }
    if (!a.postprocess.empty()) {
        file.postprocess = a.postprocess;
    }
    if (a.answer_limit > 0) {
        file.answer_limit = a.answer_limit;
    }
    if (!a.tools.empty()) {
        file.tools = a.tools;
    }
    for (const auto& word : words(a.without)) {
        switch_off(file.accelerate, word);
    }
    if (!a.memory.empty()) {
        file.memory = size_of(a.memory);
    }
    if (a.workers > 0) {
        file.workers = static_cast<int>(a.workers);
    } else if (!is_campaign_file(a.subject)) {
        file.workers = 0;
    }
    if (!a.audit.empty()) {
        file.audit = audit_of(a.audit);
    }
    file.isolate = file.isolate && !a.not_isolated;
    if (a.time_limit > 0) {
        file.time_limit = a.time_limit;
    }
    if (!a.store.empty()) {
        file.store = a.store;
    }
    check_campaign(file);
    return file;
}

}  // namespace trocar::inject
