#include <fmt/format.h>

#include <algorithm>

#include "mapping/engine.h"
#include "trocar/engine.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

EngineOptions parse_engine(std::string_view text) {
    const auto fail = [&](const std::string& why) {
        throw Error(Fault::usage, fmt::format("engine '{}' {}", text, why),
                    "write NAME[:PATH][,key=value…], as in onnxruntime:/opt/ort/lib,provider=cuda");
    };
    EngineOptions options;
    const auto comma = text.find(',');
    const auto head = text.substr(0, comma);
    const auto colon = head.find(':');
    options.name = head.substr(0, colon);
    if (options.name.empty()) {
        fail("has no name");
    }
    if (colon != std::string_view::npos) {
        options.path = head.substr(colon + 1);
        if (options.path.empty()) {
            fail("has no path after the colon");
        }
    }
    auto rest = comma == std::string_view::npos ? std::string_view{} : text.substr(comma);
    while (!rest.empty()) {
        rest.remove_prefix(1);  // the comma
        const auto item = rest.substr(0, rest.find(','));
        const auto equals = item.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            fail(fmt::format("has '{}' where key=value should stand", item));
        }
        options.options.emplace_back(item.substr(0, equals), item.substr(equals + 1));
        rest.remove_prefix(item.size());
    }
    return options;
}

Model Engine::deployed(const Model& /*model*/) {
    throw Error(Fault::unsupported,
                fmt::format("{} does not tell what it makes of a model", info().name),
                "--view source has the model's own ops");
}

KernelTimes Program::take_times() {
    throw Error(Fault::unsupported, "the program was not compiled to time its ops");
}

std::string engine_for(std::string_view dialect, const EngineOptions& options) {
    const auto takes = [&](const EngineKind& kind) {
        const auto found = kind.find(options);
        return std::any_of(found.begin(), found.end(), [&](const EngineInfo& info) {
            const auto& dialects = info.can.dialects;
            return info.available &&
                   std::find(dialects.begin(), dialects.end(), dialect) != dialects.end();
        });
    };
    const EngineKind* other = nullptr;
    for (const auto* kind : engine_kinds()) {
        if (options.name == kind->name && takes(*kind)) {
            return options.name;
        }
    }
    for (const auto* kind : engine_kinds()) {
        if (other == nullptr && options.name != kind->name && takes(*kind)) {
            other = kind;
        }
    }
    return other != nullptr ? other->name : options.name;
}

std::shared_ptr<Engine> open_engine(const EngineOptions& options) {
    std::vector<std::string_view> names;
    for (const auto* kind : engine_kinds()) {
        if (options.name == kind->name) {
            return mapping::with_mappings(kind->open(options), options);
        }
        names.emplace_back(kind->name);
    }
    throw Error(Fault::usage, fmt::format("there is no engine named '{}'", options.name),
                fmt::format("known engines: {}", join(names, ", ")));
}

}  // namespace trocar
