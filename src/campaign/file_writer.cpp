#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "campaign/words.h"
#include "trocar/campaign_file.h"
#include "util/report_blocks.h"

namespace trocar {

namespace {

// As it is where every reader of YAML takes it for a text, else in double quotes.
std::string scalar(std::string_view text) {
    constexpr std::string_view letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789./-";
    const bool plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
                       text.find_first_not_of(letters) == std::string_view::npos &&
                       text.size() > 5;  // true, null, off…
    if (plain) {
        return std::string(text);
    }
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            quoted +=
                fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

const char* truth(bool value) {
    return value ? "true" : "false";
}

// Lines of "key: value", each below the one before.
class Lines {
public:
    void open(const std::string& key) {
        add(key + ":");
        indent_ += 2;
    }
    void close() { indent_ -= 2; }
    void put(const std::string& key, const std::string& value) { add(key + ": " + value); }
    void put(const std::string& key, bool value) { put(key, std::string(truth(value))); }
    void put(const std::string& key, std::uint64_t value) { put(key, fmt::format("{}", value)); }
    void put(const std::string& key, double value) { put(key, exact(value)); }
    void put_text(const std::string& key, const std::string& value) {
        if (!value.empty()) {
            put(key, scalar(value));
        }
    }
    void put_list(const std::string& key, const std::vector<std::string>& values) {
        if (!values.empty()) {
            open(key);
            for (const auto& value : values) {
                add("- " + scalar(value));
            }
            close();
        }
    }
    // What follows until `end_item` belongs to one item of a list.
    void begin_item() {
        item_ = true;
        indent_ += 2;
    }
    void end_item() { indent_ -= 2; }
    std::string finish() { return std::move(text_); }

private:
    void add(const std::string& line) {
        text_ += std::string(static_cast<std::size_t>(item_ ? indent_ - 2 : indent_), ' ') +
                 (item_ ? "- " : "") + line + "\n";
        item_ = false;
    }
    std::string text_;
    int indent_ = 0;
    bool item_ = false;
};

constexpr std::array targets{"weights", "activations", "reads", "inputs", "constants"};
constexpr std::array extents{"element", "row", "channel", "tensor"};
constexpr std::array allocations{"proportional", "equal", "data-aware"};
constexpr std::array range_words{"off", "observe", "clip"};

template <class Names, class Enum>
std::string word(const Names& names, Enum value) {
    return names.at(static_cast<std::size_t>(value));
}

void put(Lines& lines, const Population& population) {
    lines.begin_item();
    lines.put("target", word(targets, population.target));
    lines.put_text("ops", population.ops.text());
    lines.put_text("tensors", population.tensors);
    if (population.dtype) {
        lines.put("dtype", name(*population.dtype));
    }
    lines.put_text("elements", text(population.elements));
    lines.put_text("bits", population.bits);
    lines.put_text("effect", campaign::effect_text(population.effect));
    lines.put("bits_at_once", static_cast<std::uint64_t>(population.bits_at_once));
    lines.put("elements_at_once", static_cast<std::uint64_t>(population.elements_at_once));
    lines.put("extent", word(extents, population.extent));
    lines.put("all_readers", population.all_readers);
    lines.put("duration", campaign::duration_text(population.duration));
    lines.end_item();
}

void put_faults(Lines& lines, const CampaignFile& campaign) {
    if (campaign.populations.empty() && campaign.list.empty() && campaign.files.empty()) {
        return;
    }
    lines.open("faults");
    for (const auto& population : campaign.populations) {
        put(lines, population);
    }
    for (const auto& file : campaign.files) {
        lines.begin_item();
        lines.put("file", scalar(file));
        lines.end_item();
    }
    if (!campaign.list.empty()) {
        std::vector<std::string> texts;
        for (const auto& faults : campaign.list) {
            texts.push_back(text(faults));
        }
        lines.begin_item();
        lines.put_list("list", texts);
        lines.end_item();
    }
    lines.close();
}

void put_trials(Lines& lines, const CampaignFile& campaign) {
    if (campaign.exhaustive) {
        lines.put("trials", std::string("exhaustive"));
    } else if (campaign.margin) {
        lines.open("trials");
        lines.put("margin", *campaign.margin);
        lines.put("confidence", campaign.confidence);
        lines.close();
    } else if (campaign.trials) {
        lines.put("trials", *campaign.trials);
    }
    std::string strata;
    for (const auto& [by, what] :
         {std::pair{campaign.by_layer, "layer"}, std::pair{campaign.by_bit, "bit"},
          std::pair{campaign.by_target, "target"}}) {
        if (by) {
            strata += (strata.empty() ? "" : ", ") + std::string(what);
        }
    }
    lines.put("stratify", "[" + strata + "]");
    lines.put("allocation", word(allocations, campaign.allocation));
    if (!campaign.importance.empty()) {
        lines.open("importance");
        for (const auto& one : campaign.importance) {
            lines.begin_item();
            lines.put_text("bits", one.bits);
            lines.put_text("layers", one.layers);
            lines.put("factor", one.factor);
            lines.end_item();
        }
        lines.close();
    }
    if (campaign.stop_at) {
        lines.put("stop_at", *campaign.stop_at);
    }
    lines.put("faults_per_trial", static_cast<std::uint64_t>(campaign.faults_per_trial));
    lines.put("inputs_per_fault", campaign.inputs_per_fault == 0
                                      ? std::string("all")
                                      : fmt::format("{}", campaign.inputs_per_fault));
    lines.put("only_correct", campaign.only_correct);
}

void put_inputs(Lines& lines, const CampaignFile& campaign, bool everything) {
    if (campaign.data) {
        const auto& data = *campaign.data;
        lines.open("data");
        if (everything) {
            lines.put_text("path", data.path);
            lines.put_text("kind", data.kind);
            lines.put_text("labels", data.labels);
        }
        lines.put_text("split", data.split);
        lines.put("offset", data.offset);
        if (data.limit) {
            lines.put("limit", *data.limit);
        }
        if (!data.preprocess.empty()) {
            lines.open("preprocess");
            for (const auto& [key, value] : data.preprocess) {
                lines.put(key, scalar(value));
            }
            lines.close();
        }
        lines.close();
    }
    const auto& inputs = campaign.inputs;
    if (!inputs.sources.empty() || !inputs.shapes.empty() || !inputs.fill.empty()) {
        lines.open("inputs");
        lines.put_list("sources", inputs.sources);
        lines.put_list("shapes", inputs.shapes);
        lines.put_text("fill", inputs.fill);
        lines.close();
    }
}

// A tool is known by its name and settings, wherever it stands.
std::vector<std::string> without_folders(std::vector<std::string> tools) {
    for (auto& tool : tools) {
        const auto end = std::min(tool.find(','), tool.size());
        tool = std::filesystem::path(tool.substr(0, end)).filename().string() + tool.substr(end);
    }
    return tools;
}

void put_measures(Lines& lines, const CampaignFile& campaign, bool everything) {
    lines.open("monitors");
    lines.put("nan", std::string(campaign.nan_everywhere ? "all" : "outputs"));
    lines.put("ranges", word(range_words, campaign.ranges));
    lines.put("margin", campaign.range_margin);
    lines.close();
    if (campaign.decision.kind != Decision::Kind::automatic) {
        lines.put_text("decision", text(campaign.decision));
    }
    lines.put_text("postprocess", campaign.postprocess);
    lines.put_text("metric", campaign.metric);
    if (campaign.answer_limit) {
        lines.put("answer_limit", *campaign.answer_limit);
    }
    lines.put_list("tools", everything ? campaign.tools : without_folders(campaign.tools));
    lines.put("layer_effects", campaign.layer_effects);
    if (campaign.time_limit) {
        lines.put("time_limit", *campaign.time_limit);
    }
}

void put_work(Lines& lines, const CampaignFile& campaign) {
    lines.open("accelerate");
    lines.put("prefix", campaign.accelerate.prefix);
    lines.put("dead", campaign.accelerate.dead);
    lines.put("region", campaign.accelerate.region);
    lines.put("channels", campaign.accelerate.channels);
    lines.put("screen", campaign.accelerate.screen);
    lines.put("twins", campaign.accelerate.twins);
    lines.put("batch", std::uint64_t{campaign.accelerate.batch});
    lines.close();
    lines.put("memory", campaign.memory);
    lines.put("workers", static_cast<std::uint64_t>(campaign.workers));
    lines.put("audit", campaign.audit);
    if (!campaign.margin) {
        lines.put("confidence", campaign.confidence);
    }
    lines.put("isolate", campaign.isolate);
    lines.put_text("store", campaign.store);
}

std::string written(const CampaignFile& campaign, bool everything) {
    Lines lines;
    if (everything) {
        lines.put_text("model", campaign.model);
        lines.put_text("engine", campaign.engine);
        lines.put("threads", static_cast<std::uint64_t>(campaign.threads));
    }
    lines.put("view", std::string(!campaign.view                  ? "auto"
                                  : campaign.view == View::source ? "source"
                                                                  : "deployed"));
    if (campaign.seed || !everything) {
        lines.put("seed", campaign.seed.value_or(0));
    }
    put_inputs(lines, campaign, everything);
    put_faults(lines, campaign);
    put_trials(lines, campaign);
    put_measures(lines, campaign, everything);
    if (everything) {
        put_work(lines, campaign);
    }
    return lines.finish();
}

}  // namespace

std::string campaign_text(const CampaignFile& campaign) {
    return written(campaign, true);
}

std::string canonical_text(const CampaignFile& campaign) {
    return written(campaign, false);
}

}  // namespace trocar
