#include <fmt/format.h>

#include <map>

#include "tools/dump/index.h"
#include "tools/dump/scopes.h"
#include "tools/dump/tensor_store.h"
#include "trocar/dump.h"
#include "trocar/error.h"
#include "util/growing_file.h"
#include "util/sha256.h"
#include "util/text.h"
#include "util/xxh64.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

// Makes the folder; what is in one already is left alone.
const fs::path& make_folder(const fs::path& folder) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure || !fs::is_directory(folder, failure)) {
        throw Error(Fault::input, fmt::format("cannot make the folder '{}': {}", folder.string(),
                                              failure ? failure.message() : "it is a file"));
    }
    if (!fs::is_empty(folder, failure) && !failure) {
        throw Error(Fault::usage, fmt::format("the folder '{}' is not empty", folder.string()),
                    "remove it, or name another with --output");
    }
    return folder;
}

std::string bad_text(const std::string& name, const Value& value) {
    const auto s = statistics(value, {.spread = StatisticsOptions::Spread::none});
    std::vector<std::string> parts;
    if (s.nans > 0) {
        parts.push_back(fmt::format("{} NaN", s.nans));
    }
    if (s.infinities() > 0) {
        parts.push_back(fmt::format("{} infinite", s.infinities()));
    }
    return fmt::format("'{}' holds {}", name, join(parts, " and "));
}

const char* kind_name(Value::Kind kind) {
    switch (kind) {
        case Value::Kind::none:
            return "none";
        case Value::Kind::tensor:
            return "tensor";
        case Value::Kind::sparse_tensor:
            return "sparse tensor";
        case Value::Kind::sequence:
            return "sequence";
        case Value::Kind::map:
            return "map";
        default:
            return "opaque";
    }
}

// What tensors are called in files: unique but for bodies that run more than once in a round.
std::string stored_name(const DumpRecord& record) {
    return record.iterations.empty()
               ? record.tensor
               : fmt::format("{}@{}", record.tensor, join(record.iterations, "."));
}

}  // namespace

std::string dump_hash(const Value& value, DumpOptions::Hash hash) {
    if (hash == DumpOptions::Hash::none || !value.is_tensor() || bits(value.dtype()) == 0 ||
        !value.device().is_host()) {
        return {};
    }
    if (hash == DumpOptions::Hash::xxh64) {
        return fmt::format("{:016x}", xxh64(value.bytes()));
    }
    return sha256_of(value.bytes());
}

struct DumpWriter::Parts {
    const Model& model;
    DumpOptions options;
    dump::Scopes scopes;
    GrowingFile index;
    dump::TensorStore store;
    std::uint64_t next_set = 0;
    std::uint64_t set = 0;
    std::uint64_t records = 0;
    std::uint64_t tensor_bytes = 0;
    bool finished = false;
    bool cancelled = false;
    std::optional<FirstBad> first_bad;

    Parts(const Model& m, DumpOptions o)
        : model(m),
          options(std::move(o)),
          scopes(model),
          index(make_folder(options.folder) / dump::index_name),
          store(options.folder, options.tensors) {
        index.write(dump::head_line(options));
    }

    DumpRecord describe(const Port& port, std::size_t slot) const {
        const auto& op = port.op();
        DumpRecord record;
        record.set = set;
        record.op = place(port.graph(), port.id());
        record.type = op.type;
        record.name = op.name;
        record.module = op.origin.module;
        record.scope = scopes.of(port.graph());
        record.iterations.assign(port.iterations().begin(), port.iterations().end());
        record.slot = slot;
        record.tensor = port.graph().tensor(op.outputs[slot]).name;
        add_sources(port, slot, record);
        return record;
    }

    // Deployed view: what of the model is computed here.
    void add_sources(const Port& port, std::size_t slot, DumpRecord& record) const {
        for (const auto source : port.sources()) {
            record.sources.push_back(model.graph.describe(source));
        }
        const auto tensor = port.source_tensor(slot);
        if (tensor != TensorId::none && model.graph.tensor(tensor).name != record.tensor) {
            record.source_tensor = model.graph.tensor(tensor).name;
        }
    }

    // The place of an op in order, as messages name it; counted once per graph.
    std::uint64_t place(const Graph& graph, OpId id) const {
        auto& known = places[&graph];
        if (known.empty()) {
            known.resize(graph.op_limit());
            std::uint64_t number = 0;
            for (const auto op : graph.ops()) {
                known[trocar::index(op)] = number++;
            }
        }
        return known[trocar::index(id)];
    }
    mutable std::map<const Graph*, std::vector<std::uint64_t>> places;

    DumpRecord write(const Port& port, std::size_t slot) {
        const auto& value = port.output(slot);
        auto record = describe(port, slot);
        record.kind = kind_name(value.kind());
        if (value.is_tensor()) {
            record.dtype = value.dtype();
            record.shape = value.shape();
            record.bytes = byte_size(value.dtype(), value.element_count());
        }
        if (has_statistics(value)) {
            record.statistics = statistics(port, slot, options.statistics);
        }
        record.hash = dump_hash(value, options.hash);
        if (value.kind() != Value::Kind::none) {
            if (auto stored = store.add(stored_name(record), value)) {
                record.file = std::move(stored->file);
                record.offset = stored->offset;
                tensor_bytes += record.bytes;
            }
        }
        index.write(dump::record_line(record, options.histograms));
        ++records;
        return record;
    }

    // What an op that made a NaN or an infinity was given.
    static std::vector<std::string> bad_inputs(const Port& port) {
        std::vector<std::string> bad;
        for (std::size_t slot = 0; slot < port.input_count(); ++slot) {
            const auto id = port.op().inputs[slot];
            if (id == TensorId::none) {
                continue;
            }
            const auto& value = port.input(slot);
            if (has_statistics(value) && count_bad(value) > 0) {
                bad.push_back(bad_text(port.graph().tensor(id).name, value));
            }
        }
        return bad;
    }
};

DumpWriter::DumpWriter(const Model& model, const Selector& at, DumpOptions options)
    : Tool("dump"), parts_(std::make_unique<Parts>(model, std::move(options))) {
    auto& probe = after(at, [this](Port& port) {
        auto& p = *parts_;
        if (p.options.cancel && p.options.cancel()) {
            p.cancelled = true;
            port.stop();
            return;
        }
        for (std::size_t slot = 0; slot < port.output_count(); ++slot) {
            if (port.op().outputs[slot] == TensorId::none) {
                continue;
            }
            const auto record = p.write(port, slot);
            if (on_record) {
                on_record(record);
            }
            if (p.options.first_bad && record.statistics && record.statistics->bad() > 0) {
                p.first_bad = FirstBad{record, Parts::bad_inputs(port)};
                port.stop();
                return;
            }
        }
    });
    probe.modifies = false;  // it only stops the run, which changes no tensor
    if (parts_->options.first_bad) {
        probe.with_inputs();
    }
}

DumpWriter::~DumpWriter() = default;

void DumpWriter::start_set(std::span<const DumpInput> inputs) {
    auto& p = *parts_;
    p.set = p.next_set++;
    p.store.start_set(p.set);
    p.index.write(dump::set_line(p.set, inputs));
}

void DumpWriter::finish(std::string_view how) {
    auto& p = *parts_;
    if (!p.finished) {
        p.store.close();
        p.index.write(dump::end_line(how, p.records));
        p.finished = true;
    }
}

const std::optional<FirstBad>& DumpWriter::first_bad() const {
    return parts_->first_bad;
}

bool DumpWriter::cancelled() const {
    return parts_->cancelled;
}

std::uint64_t DumpWriter::tensor_bytes() const {
    return parts_->tensor_bytes;
}

fs::path DumpWriter::index() const {
    return parts_->index.path();
}

}  // namespace trocar
