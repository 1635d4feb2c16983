#include <cstring>

#include "tools/inject/prepare.h"
#include "trocar/error.h"
#include "trocar/format.h"

namespace trocar::inject {

namespace {

// Texts one after the other, each with its length.
class Texts {
public:
    Texts() = default;
    explicit Texts(std::string all) : all_(std::move(all)) {}

    void put(const std::string& text) {
        const auto size = text.size();
        all_.append(reinterpret_cast<const char*>(&size), sizeof size);
        all_ += text;
    }
    std::string take() {
        std::size_t size = 0;
        if (all_.size() - at_ < sizeof size) {
            throw Error(Fault::internal, "a campaign's recipe ends early");
        }
        std::memcpy(&size, all_.data() + at_, sizeof size);
        at_ += sizeof size;
        if (all_.size() - at_ < size) {
            throw Error(Fault::internal, "a campaign's recipe ends early");
        }
        at_ += size;
        return all_.substr(at_ - size, size);
    }
    bool more() const { return at_ < all_.size(); }
    const std::string& all() const { return all_; }

private:
    std::string all_;
    std::size_t at_ = 0;
};

void make(const std::string& arguments, const CampaignTaker& take) {
    Texts texts(arguments);
    auto file = parse_campaign(texts.take(), "the campaign");
    const bool brute_force = texts.take() == "brute force";
    const auto format = texts.take();
    EngineOptions engine;
    engine.name = texts.take();
    engine.path = texts.take();
    engine.scratch = texts.take();
    for (auto count = std::stoul(texts.take()); count > 0; --count) {
        engine.search.push_back(texts.take());
    }
    while (texts.more()) {
        auto key = texts.take();
        engine.options.emplace_back(std::move(key), texts.take());
    }
    auto model = std::make_unique<Model>(load(file.model, format));
    auto prepared = prepare(std::move(file), std::move(model), engine, 1);
    prepared.options.brute_force = brute_force;
    take(*prepared.model, prepared.engine, prepared.inputs, prepared.options);
}

}  // namespace

CampaignRecipe recipe_of(const Prepared& prepared) {
    const auto& engine = prepared.engine_options;
    auto file = prepared.file;
    file.files.clear();  // their faults are in the list
    file.decision = prepared.options.monitoring.decision;
    if (!prepared.options.sampling.list.empty()) {
        file.list = prepared.options.sampling.list;
        file.populations.clear();
        file.trials.reset();
        file.margin.reset();
        file.stop_at.reset();
        file.importance.clear();
        file.exhaustive = file.by_layer = file.by_bit = file.by_target = false;
        file.faults_per_trial = 1;
        file.allocation = Allocation::proportional;
    }
    if (!file.exhaustive && file.list.empty()) {
        file.trials = prepared.options.sampling.trials;
        file.margin.reset();
    }
    Texts texts;
    texts.put(campaign_text(file));
    texts.put(prepared.options.brute_force ? "brute force" : "");
    texts.put(prepared.model->format);
    texts.put(engine.name);
    texts.put(engine.path);
    texts.put(engine.scratch);
    texts.put(std::to_string(engine.search.size()));
    for (const auto& folder : engine.search) {
        texts.put(folder);
    }
    for (const auto& [key, value] : engine.options) {
        texts.put(key);
        texts.put(value);
    }
    return {make, texts.all()};
}

}  // namespace trocar::inject
