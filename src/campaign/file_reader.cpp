#include <fmt/format.h>

#include <algorithm>

#include "campaign/words.h"
#include "trocar/campaign_file.h"
#include "trocar/preprocess.h"
#include "trocar/tool_library.h"
#include "util/files.h"
#include "util/text.h"
#include "util/yaml.h"

namespace trocar {

namespace {

using yaml::Field;

int small(const Field& field, std::uint64_t least, std::uint64_t most) {
    return static_cast<int>(field.natural(least, most));
}

// Numbers as in "0.485, 0.456" and lists of them, without blanks.
std::string joined(const Field& field) {
    std::string all;
    for (const auto& text : field.texts()) {
        all += (all.empty() ? "" : ",") + text;
    }
    std::erase(all, ' ');
    return all;
}

std::vector<std::pair<std::string, std::string>> read_preprocess(const Field& field) {
    std::vector<std::pair<std::string, std::string>> steps;
    Field::Keys keys;
    for (const char* key : campaign::preprocess_keys) {
        keys.emplace_back(key, [&steps, key](const Field& value) {
            steps.emplace_back(key,
                               std::string_view(key) == "command" ? value.text() : joined(value));
        });
    }
    field.read(keys);
    // The steps have an order of their own.
    std::vector<std::pair<std::string, std::string>> ordered;
    for (const char* key : campaign::preprocess_keys) {
        for (auto& step : steps) {
            if (step.first == key) {
                ordered.push_back(std::move(step));
            }
        }
    }
    std::vector<std::string> texts;
    for (const auto& [key, value] : ordered) {
        texts.push_back(fmt::format("{}={}", key, value));
    }
    field.parsed([&] { return parse_preprocess(texts); });
    return ordered;
}

CampaignFile::Data read_data(const Field& field) {
    CampaignFile::Data data;
    if (field.is_scalar()) {
        data.path = field.text();
        return data;
    }
    field.read({
        {"path", [&](const Field& f) { data.path = f.text(); }},
        {"kind",
         [&](const Field& f) {
             f.choice({"images", "arrays", "idx", "cifar10", "cifar100", "events"});
             data.kind = f.text();
         }},
        {"labels", [&](const Field& f) { data.labels = f.text(); }},
        {"split",
         [&](const Field& f) {
             f.choice({"test", "train"});
             data.split = f.text();
         }},
        {"offset", [&](const Field& f) { data.offset = f.natural(); }},
        {"limit", [&](const Field& f) { data.limit = f.natural(1); }},
        {"preprocess", [&](const Field& f) { data.preprocess = read_preprocess(f); }},
    });
    if (data.path.empty()) {
        field.fail("it needs a path");
    }
    return data;
}

void read_inputs(InputSpec& inputs, const Field& field) {
    if (!field.is_map()) {
        inputs.sources = field.texts();
        return;
    }
    field.read({
        {"sources", [&](const Field& f) { inputs.sources = f.texts(); }},
        {"shapes", [&](const Field& f) { inputs.shapes = f.texts(); }},
        {"fill", [&](const Field& f) { inputs.fill = f.text(); }},
    });
}

void read_faults_entry(CampaignFile& campaign, const Field& field) {
    Population population;
    bool is_population = false;
    bool is_list = false;
    const auto of_population = [&](const auto& read) {
        return [&is_population, read](const Field& f) {
            is_population = true;
            read(f);
        };
    };
    using Target = Population::Target;
    using Extent = Population::Extent;
    field.read({
        {"list",
         [&](const Field& f) {
             is_list = true;
             for (const auto& item : f.items()) {
                 campaign.list.push_back(item.parsed([&] { return parse_faults(item.text()); }));
             }
         }},
        {"file",
         [&](const Field& f) {
             is_list = true;
             campaign.files.push_back(f.text());
         }},
        {"target", of_population([&](const Field& f) {
             population.target = static_cast<Target>(
                 f.choice({"weights", "activations", "reads", "inputs", "constants"}));
         })},
        {"ops", of_population([&](const Field& f) {
             population.ops = f.parsed([&] { return parse_selector(f.text()); });
         })},
        {"tensors", of_population([&](const Field& f) { population.tensors = f.text(); })},
        {"dtype", of_population([&](const Field& f) {
             population.dtype = parse_dtype(f.text());
             if (!population.dtype) {
                 f.fail(fmt::format("'{}' is no type of elements", f.text()), "f32, i8, bf16…");
             }
         })},
        {"elements", of_population([&](const Field& f) {
             population.elements = f.parsed([&] { return campaign::parse_elements(f.text()); });
         })},
        {"bits", of_population([&](const Field& f) {
             population.bits = joined(f);
             f.parsed([&] { return campaign::check_bits(population.bits); });
         })},
        {"effect", of_population([&](const Field& f) {
             population.effect = f.parsed([&] { return campaign::parse_effect(f.text()); });
         })},
        {"bits_at_once",
         of_population([&](const Field& f) { population.bits_at_once = small(f, 1, 64); })},
        {"elements_at_once", of_population([&](const Field& f) {
             population.elements_at_once = small(f, 1, 1u << 30);
         })},
        {"extent", of_population([&](const Field& f) {
             population.extent =
                 static_cast<Extent>(f.choice({"element", "row", "channel", "tensor"}));
         })},
        {"all_readers", of_population([&](const Field& f) { population.all_readers = f.truth(); })},
        {"duration", of_population([&](const Field& f) {
             population.duration = f.parsed([&] { return campaign::parse_duration(f.text()); });
         })},
    });
    if (is_population && is_list) {
        field.fail("a list of faults and where random ones may be are two entries");
    }
    if (!is_list) {
        campaign.populations.push_back(std::move(population));
    }
}

void read_trials(CampaignFile& campaign, const Field& field) {
    if (field.is_scalar() && field.text() == "exhaustive") {
        campaign.exhaustive = true;
    } else if (field.is_map()) {
        field.read({
            {"margin", [&](const Field& f) { campaign.margin = f.share(); }},
            {"confidence", [&](const Field& f) { campaign.confidence = f.share(); }},
        });
        if (!campaign.margin) {
            field.fail("it needs a margin");
        }
    } else {
        campaign.trials = field.natural(1);
    }
}

void read_strata(CampaignFile& campaign, const Field& field) {
    for (const auto& item : field.items()) {
        const auto which = item.choice({"layer", "bit", "target"});
        (which == 0 ? campaign.by_layer : which == 1 ? campaign.by_bit : campaign.by_target) = true;
    }
}

void read_importance(CampaignFile& campaign, const Field& field) {
    for (const auto& item : field.items()) {
        Importance one;
        item.read({
            {"bits",
             [&](const Field& f) {
                 one.bits = joined(f);
                 f.parsed([&] { return campaign::check_bits(one.bits); });
             }},
            {"layers", [&](const Field& f) { one.layers = f.text(); }},
            {"factor", [&](const Field& f) { one.factor = f.number(1e-9, 1e9); }},
        });
        if (one.bits.empty() && one.layers.empty()) {
            item.fail("it needs bits or layers");
        }
        campaign.importance.push_back(std::move(one));
    }
}

void read_monitors(CampaignFile& campaign, const Field& field) {
    field.read({
        {"nan",
         [&](const Field& f) {
             campaign.nan_everywhere = f.choice({"outputs", "all"}) == 1;
         }},
        {"ranges",
         [&](const Field& f) {
             campaign.ranges = static_cast<Ranges>(f.choice({"off", "observe", "clip"}));
         }},
        {"margin", [&](const Field& f) { campaign.range_margin = f.number(0, 1e6); }},
    });
}

void read_accelerate(Accelerate& accelerate, const Field& field) {
    if (field.is_scalar()) {
        const bool on = field.truth();
        accelerate.prefix = accelerate.dead = accelerate.region = accelerate.channels =
            accelerate.screen = accelerate.twins = on;
        accelerate.batch = on ? accelerate.batch : 1;
        return;
    }
    field.read({
        {"prefix", [&](const Field& f) { accelerate.prefix = f.truth(); }},
        {"dead", [&](const Field& f) { accelerate.dead = f.truth(); }},
        {"region", [&](const Field& f) { accelerate.region = f.truth(); }},
        {"channels", [&](const Field& f) { accelerate.channels = f.truth(); }},
        {"screen", [&](const Field& f) { accelerate.screen = f.truth(); }},
        {"twins", [&](const Field& f) { accelerate.twins = f.truth(); }},
        {"batch", [&](const Field& f) { accelerate.batch = f.natural(1, 1u << 20); }},
    });
}

Field::Keys keys_of(CampaignFile& c) {
    return {
        {"model", [&](const Field& f) { c.model = f.text(); }},
        {"engine",
         [&](const Field& f) {
             c.engine = f.text();
             f.parsed([&] { return parse_engine(c.engine); });
         }},
        {"threads", [&](const Field& f) { c.threads = small(f, 0, 4096); }},
        {"view",
         [&](const Field& f) {
             const auto chosen = f.choice({"auto", "source", "deployed"});
             c.view = chosen == 0   ? std::nullopt
                      : chosen == 1 ? std::optional(View::source)
                                    : std::optional(View::deployed);
         }},
        {"seed", [&](const Field& f) { c.seed = f.natural(); }},
        {"data", [&](const Field& f) { c.data = read_data(f); }},
        {"inputs", [&](const Field& f) { read_inputs(c.inputs, f); }},
        {"faults",
         [&](const Field& f) {
             for (const auto& item : f.items()) {
                 read_faults_entry(c, item);
             }
         }},
        {"trials", [&](const Field& f) { read_trials(c, f); }},
        {"confidence", [&](const Field& f) { c.confidence = f.share(); }},
        {"stratify", [&](const Field& f) { read_strata(c, f); }},
        {"allocation",
         [&](const Field& f) {
             c.allocation =
                 static_cast<Allocation>(f.choice({"proportional", "equal", "data-aware"}));
         }},
        {"importance", [&](const Field& f) { read_importance(c, f); }},
        {"stop_at", [&](const Field& f) { c.stop_at = f.share(); }},
        {"faults_per_trial", [&](const Field& f) { c.faults_per_trial = small(f, 1, 1u << 20); }},
        {"inputs_per_fault",
         [&](const Field& f) {
             c.inputs_per_fault = f.is_scalar() && f.text() == "all" ? 0 : f.natural(1);
         }},
        {"only_correct", [&](const Field& f) { c.only_correct = f.truth(); }},
        {"monitors", [&](const Field& f) { read_monitors(c, f); }},
        {"decision",
         [&](const Field& f) { c.decision = f.parsed([&] { return parse_decision(f.text()); }); }},
        {"postprocess", [&](const Field& f) { c.postprocess = f.text(); }},
        {"metric", [&](const Field& f) { c.metric = f.text(); }},
        {"answer_limit", [&](const Field& f) { c.answer_limit = f.number(1e-3, 1e9); }},
        {"tools",
         [&](const Field& f) {
             for (const auto& item : f.items()) {
                 c.tools.push_back(item.text());
                 item.parsed([&] { return parse_tool(c.tools.back()); });
             }
         }},
        {"layer_effects", [&](const Field& f) { c.layer_effects = f.truth(); }},
        {"accelerate", [&](const Field& f) { read_accelerate(c.accelerate, f); }},
        {"memory", [&](const Field& f) { c.memory = f.bytes(); }},
        {"workers", [&](const Field& f) { c.workers = small(f, 0, 4096); }},
        {"audit", [&](const Field& f) { c.audit = f.share(); }},
        {"isolate", [&](const Field& f) { c.isolate = f.truth(); }},
        {"time_limit", [&](const Field& f) { c.time_limit = f.number(1e-3, 1e9); }},
        {"store", [&](const Field& f) { c.store = f.text(); }},
    };
}

// From the folder of the campaign, unless absolute.
void stand_from(const std::filesystem::path& folder, std::string& path) {
    if (!path.empty()) {
        path = (folder / path).lexically_normal().string();
    }
}

void read_fault_file(CampaignFile& campaign, const std::string& file) {
    std::size_t number = 0;
    for (const auto& line : split(read_file(file), '\n')) {
        ++number;
        const auto text = trim(line);
        if (text.empty() || text.starts_with('#')) {
            continue;
        }
        try {
            campaign.list.push_back(parse_faults(text));
        } catch (const Error& e) {
            throw Error(Fault::input, fmt::format("{}:{}: {}", file, number, e.what()), e.hint());
        }
    }
}

}  // namespace

CampaignFile parse_campaign(std::string_view text, const std::string& name) {
    const auto whole = yaml::parse(std::string(text), name);
    CampaignFile file;
    if (!whole.is_map()) {
        whole.fail("this is not a campaign: it has no keys", "it begins with model: FILE");
    }
    whole.read(keys_of(file));
    whole.parsed([&] { check_campaign(file); });
    return file;
}

CampaignFile read_campaign(const std::filesystem::path& path) {
    auto file = parse_campaign(read_file(path), path.string());
    const auto folder = path.parent_path();
    stand_from(folder, file.model);
    stand_from(folder, file.store);
    if (file.data) {
        stand_from(folder, file.data->path);
        stand_from(folder, file.data->labels);
    }
    for (auto& tool : file.tools) {
        const auto end = std::min(tool.find(','), tool.size());
        auto library = tool.substr(0, end);
        stand_from(folder, library);
        tool.replace(0, end, library);
    }
    for (auto& faults : file.files) {
        stand_from(folder, faults);
        read_fault_file(file, faults);
    }
    file.files.clear();
    return file;
}

}  // namespace trocar
