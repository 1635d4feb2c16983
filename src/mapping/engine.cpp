#include "mapping/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "mapping/match.h"
#include "mapping/rule_files.h"
#include "mapping/typed_program.h"
#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/text.h"

namespace trocar::mapping {

namespace {

bool takes(const std::vector<std::string>& dialects, const std::string& dialect) {
    return std::find(dialects.begin(), dialects.end(), dialect) != dialects.end();
}

// An engine that is given models of other dialects in the words of its own. Tensors keep their
// names, so that whoever compiles a part of a model need not know.
class MappedEngine final : public Engine, public std::enable_shared_from_this<MappedEngine> {
public:
    MappedEngine(std::shared_ptr<Engine> engine, const EngineOptions& options)
        : engine_(std::move(engine)), own_(engine_->info().can.dialects), info_(engine_->info()) {
        other_.search = options.search;
        other_.scratch = options.scratch;
        other_.threads = options.threads;
        other_.log = options.log;
        for (const auto& [from, to] : mapped_dialects()) {
            if (takes(own_, to) && !takes(info_.can.dialects, from)) {
                info_.can.dialects.push_back(from);
            }
        }
    }

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        if (takes(own_, model.dialect)) {
            return engine_->compile(model, options);
        }
        const bool wants_types = std::any_of(own_.begin(), own_.end(), [&](const auto& dialect) {
            return needs_types(model.dialect, dialect);
        });
        if (!wants_types && has_open_inputs(model)) {
            const auto self = shared_from_this();
            return inferred_program(
                model, [self] { return self; },
                [self, options](const Model& typed) {
                    return self->engine_->compile(self->mapped(typed), options);
                });
        }
        if (!wants_types || has_all_types(model.graph)) {
            return engine_->compile(mapped(model), options);
        }
        require_rules(model);
        return typed_program(
            model,
            [other = other_, dialect = model.dialect]() mutable {
                other.name = engine_for(dialect, other);
                return open_engine(other);
            },
            [self = shared_from_this(), options](const Model& typed) {
                return self->engine_->compile(self->mapped(typed), options);
            });
    }
    Model deployed(const Model& model) override {
        return takes(own_, model.dialect) ? engine_->deployed(model)
                                          : engine_->deployed(mapped(model));
    }

private:
    Model mapped(const Model& model) const {
        for (const auto& dialect : own_) {
            if (!can_map(model.dialect, dialect)) {
                continue;
            }
            auto result = map_model(model, dialect);
            for (const auto& op : result.ops) {
                if (op.state == MappedOp::State::impossible) {
                    throw Error(Fault::unsupported,
                                fmt::format("{} cannot run {} '{}': {}", info_.name, op.type,
                                            op.name, op.why),
                                "`trocar convert` says what else cannot be mapped");
                }
            }
            return std::move(result.model);
        }
        throw Error(Fault::engine,
                    fmt::format("{} takes no models of the dialect '{}', and no rules map them",
                                info_.name, model.dialect));
    }

    // What no rule maps can be said before types are known.
    void require_rules(const Model& model) const {
        std::set<std::string> types;
        for (const auto& info : mappings()) {
            if (info.from == model.dialect && takes(own_, info.to)) {
                types.insert(info.types.begin(), info.types.end());
            }
        }
        for (const auto id : model.graph.ops()) {
            const auto& op = model.graph.op(id);
            const auto type = rule_type(op, model.dialect);
            if (op.domain != host_domain && !types.contains(type)) {
                throw Error(Fault::unsupported,
                            fmt::format("{} cannot run {} '{}': no rule maps {}", info_.name, type,
                                        op.name, type),
                            "`trocar convert` says what else cannot be mapped");
            }
        }
    }

    std::shared_ptr<Engine> engine_;
    std::vector<std::string> own_;
    EngineInfo info_;
    EngineOptions other_;  // to open one of the model's own dialect with
};

}  // namespace

std::shared_ptr<Engine> with_mappings(std::shared_ptr<Engine> engine,
                                      const EngineOptions& options) {
    const auto& own = engine->info().can.dialects;
    const auto all = mapped_dialects();
    const bool more = std::any_of(all.begin(), all.end(),
                                  [&](const auto& pair) { return takes(own, pair.second); });
    return more ? std::make_shared<MappedEngine>(std::move(engine), options) : engine;
}

}  // namespace trocar::mapping
