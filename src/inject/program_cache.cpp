#include "inject/program_cache.h"

#include <algorithm>

#include "trocar/error.h"

namespace trocar::inject {

namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 20;
constexpr std::size_t program_bytes = 16384;  // of a small program, about

Variant whole_variant(const Circuit& circuit, const ProgramSpec& spec) {
    Variant variant;
    for (const auto& lane : spec.lanes) {
        for (const auto& baked : lane) {
            ConstantChange change;
            change.pokes = baked.pokes;
            variant.constants.emplace_back(baked.tensor,
                                           changed(*circuit.constant(baked.tensor), change));
        }
    }
    return variant;
}

Variant variant_of(const Circuit& circuit, const ProgramSpec& spec) {
    switch (spec.form) {
        case ProgramSpec::Form::whole:
            return whole_variant(circuit, spec);
        case ProgramSpec::Form::positions:
            return positions_variant(circuit, spec);
        case ProgramSpec::Form::channels:
            return channels_variant(circuit, spec);
        case ProgramSpec::Form::columns:
            return columns_variant(circuit, spec);
    }
    throw Error(Fault::internal, "a program has no form");
}

// Constants as the model has them: there are few such programs, and they are needed all the time.
bool is_golden(const ProgramSpec& spec) {
    return spec.lanes.empty() && spec.columns.empty();
}

}  // namespace

void ProgramSpec::add(const Lane& lane) {
    auto& mine = lanes.emplace_back();
    for (const auto& change : lane.constants) {
        if (change.step == step) {
            if (change.constant) {
                throw Error(Fault::internal, "a constant that is replaced has no place in a key");
            }
            mine.push_back({change.tensor, change.pokes});
        }
    }
}

std::size_t ProgramCache::Hash::operator()(const ProgramSpec& spec) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto mix = [&](std::uint64_t word) {
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    };
    mix(spec.step);
    mix(static_cast<std::uint64_t>(spec.form));
    mix(static_cast<std::uint64_t>(spec.width));
    for (const auto column : spec.columns) {
        mix(column);
    }
    for (const auto& lane : spec.lanes) {
        mix(lane.size());
        for (const auto& baked : lane) {
            mix(index(baked.tensor));
            for (const auto& poke : baked.pokes) {
                mix(poke.stored);
                mix(poke.word);
            }
        }
    }
    return hash;
}

OpProgram& ProgramCache::get(const ProgramSpec& spec, const std::vector<Value>& types) {
    const auto found = entries_.find(spec);
    if (found != entries_.end()) {
        found->second.used = ++clock_;
        return found->second.program;
    }
    const auto variant = variant_of(circuit_, spec);
    Entry entry{circuit_.compile(circuit_.steps()[spec.step], types, variant)};
    entry.bytes = is_golden(spec) ? 0 : program_bytes;
    for (const auto& [tensor, constant] : variant.constants) {
        entry.bytes += 2 * constant.stored_bytes();
    }
    entry.used = ++clock_;
    make_room(entry.bytes);
    bytes_ += entry.bytes;
    return entries_.emplace(spec, std::move(entry)).first->second.program;
}

// Drops half of what may be dropped, so that there is room for a while.
void ProgramCache::make_room(std::size_t bytes) {
    if (bytes_ + bytes <= most_bytes) {
        return;
    }
    std::vector<std::uint64_t> used;
    for (const auto& [spec, entry] : entries_) {
        if (!is_golden(spec)) {
            used.push_back(entry.used);
        }
    }
    if (used.empty()) {
        return;
    }
    const auto middle = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2);
    std::nth_element(used.begin(), middle, used.end());
    std::erase_if(entries_, [&](const auto& item) {
        const bool old = !is_golden(item.first) && item.second.used <= *middle;
        bytes_ -= old ? item.second.bytes : 0;
        return old;
    });
}

}  // namespace trocar::inject
