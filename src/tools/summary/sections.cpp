#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/summary/present.h"
#include "util/text.h"

namespace trocar::summary {
double ratio(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

namespace {

std::string count_text(std::uint64_t n) {
    return show(Cell(n), Show::count);
}
std::string bytes_text(std::uint64_t n) {
    return show(Cell(n), Show::bytes);
}

std::vector<std::string> port_texts(const Summary& s, std::span<const TensorId> ids) {
    std::vector<std::string> texts;
    for (TensorId id : ids) {
        const Tensor& t = s.scope->graph->tensor(id);
        const Fact& fact = s.scope->fact(id);
        std::string declared = type_text(t.type);
        std::string text = fmt::format("{}: {}", t.name, declared);
        if (t.quantization && !t.quantization->empty()) {
            text += fmt::format(", {}", quantization_text(*t.quantization));
        }
        if (fact.shape && !t.type.shape()) {
            text += fmt::format(" → {}", shape_text(*fact.shape));
        }
        for (const Property& property : t.metadata) {
            if (property.key == "updates") {
                text += fmt::format(" (updates {})", property.value);
            }
        }
        texts.push_back(text);
    }
    return texts;
}

std::string own_domain(const Model& model) {
    return model.dialect == "onnx" ? "ai.onnx" : model.dialect;
}

// What the file says of the sizes that symbols stand for: "s77 from 2 to 1024".
std::vector<std::string> dimension_texts(const Model& model) {
    constexpr std::string_view key = "dimension ";
    std::vector<std::string> texts;
    for (const Property& property : model.metadata) {
        if (property.key.starts_with(key)) {
            texts.push_back(fmt::format("{} {}", property.key.substr(key.size()), property.value));
        }
    }
    return texts;
}

std::vector<TensorId> real_inputs(const Graph& graph) {
    std::vector<TensorId> inputs;
    for (TensorId id : graph.inputs()) {
        if (!graph.tensor(id).constant) {
            inputs.push_back(id);
        }
    }
    return inputs;
}

// Text as it is, without what pads it; of other data only how much there is.
std::vector<std::string> metadata_texts(const Model& model) {
    std::vector<std::string> texts;
    for (const Property& entry : model.metadata) {
        std::string_view value = entry.value;
        value = value.substr(0, value.find_last_not_of('\0') + 1);
        const bool is_text = std::all_of(value.begin(), value.end(), [](char c) {
            return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f;
        });
        texts.push_back(is_text && value.size() <= 60
                            ? fmt::format("{}: {}", entry.key, value)
                            : fmt::format("{}: {}", entry.key, bytes_text(entry.value.size())));
    }
    return texts;
}

std::vector<std::string> signature_texts(const Model& model) {
    std::vector<std::string> texts;
    for (const Signature& signature : model.signatures) {
        std::vector<std::string_view> inputs;
        std::vector<std::string_view> outputs;
        for (const auto& argument : signature.inputs) {
            inputs.push_back(argument.name);
        }
        for (const auto& argument : signature.outputs) {
            outputs.push_back(argument.name);
        }
        texts.push_back(
            fmt::format("{}: {} → {}", signature.name, join(inputs, ", "), join(outputs, ", ")));
    }
    return texts;
}

// How many tensors are quantized, and how many constants are stored in a form of their own.
std::vector<std::string> encoding_texts(const Graph& graph) {
    std::map<std::string, std::size_t> counts;
    for (TensorId id : graph.tensors()) {
        const Tensor& t = graph.tensor(id);
        if (t.quantization && !t.quantization->empty()) {
            const Quantization& q = *t.quantization;
            ++counts[q.custom              ? "quantized in a way of their own"
                     : q.blocks            ? "quantized in blocks"
                     : q.scales.size() > 1 ? "quantized per channel"
                                           : "quantized as a whole"];
        }
        if (t.constant && t.constant->form() && t.constant->form()->bytes() > 0) {
            std::string text = t.constant->form()->text();
            ++counts[text.substr(0, text.find(','))];
        }
    }
    std::vector<std::string> texts;
    for (const auto& [what, count] : counts) {
        texts.push_back(fmt::format("{} tensors {}", count, what));
    }
    return texts;
}

}  // namespace

Section model_section(const Summary& s) {
    const Model& m = *s.model;
    Section section{"model", "Model", {}};
    auto add = [&](const char* key, const char* title, Cell value, Show how = Show::plain,
                   std::string note = {}) {
        section.scalars.push_back({key, title, std::move(value), how, std::move(note)});
    };
    add("file", "File", m.path.string());
    add("file_bytes", "Size", m.file_bytes, Show::bytes,
        m.external_bytes > 0 ? "without external data" : "");
    if (m.external_bytes > 0) {
        add("external_bytes", "External data", m.external_bytes, Show::bytes);
    }
    std::vector<std::string> sets;
    for (const OpSet& set : m.opsets) {
        sets.push_back(
            fmt::format("{} {}", set.domain.empty() ? own_domain(m) : set.domain, set.version));
    }
    add("format", "Format", m.format);
    if (m.ir_version != 0 || m.dialect == "onnx") {
        add("ir_version", "IR version", m.ir_version);
    }
    if (!sets.empty() || m.dialect == "onnx") {
        add("opsets", "Opsets", sets);
    }
    if (!m.producer.empty()) {
        add("producer", "Producer",
            m.producer_version.empty() ? m.producer : m.producer + " " + m.producer_version);
    }
    if (m.dialect != "onnx") {
        if (!m.doc.empty()) {
            add("description", "Description", m.doc);
        }
        if (!m.metadata.empty()) {
            add("metadata", "Metadata", metadata_texts(m));
        }
        if (!m.signatures.empty()) {
            add("signatures", "Signatures", signature_texts(m));
        }
    }
    add("inputs", "Inputs", port_texts(s, real_inputs(m.graph)));
    add("outputs", "Outputs", port_texts(s, m.graph.outputs()));
    if (auto dimensions = dimension_texts(m); !dimensions.empty()) {
        add("dimensions", "Dimensions", dimensions);
    }
    add("ops", "Ops", s.rows.rows.size(), Show::count,
        m.functions.empty() ? ""
                            : fmt::format("with the bodies of {} functions", m.functions.size()));
    if (s.rows.passing > 0) {
        add("constant_ops", "Constant ops", s.rows.passing, Show::count,
            "only stand for a constant, not shown");
    }
    if (const auto texts = encoding_texts(m.graph); !texts.empty()) {
        add("encodings", "Encodings", texts);
    }
    add("shapes", "Shapes", s.shapes);
    return section;
}

Section parameter_section(const Summary& s) {
    const Inventory& i = s.inventory;
    Section section{"parameters", "Parameters", {}};
    auto add = [&](const char* key, const char* title, Cell value, Show how,
                   std::string note = {}) {
        section.scalars.push_back({key, title, std::move(value), how, std::move(note)});
    };
    add("parameters", "Parameters", i.parameters, Show::count, "what the layers have");
    add("parameters_stored", "Stored", i.stored, Show::count,
        i.stored == i.parameters ? fmt::format("in {} tensors", count_text(i.stored_tensors))
                                 : fmt::format("in {} tensors: layers share equal vectors",
                                               count_text(i.stored_tensors)));
    add("parameter_bytes", "Stored bytes", i.stored_bytes, Show::bytes);
    std::vector<std::string> dtypes;
    for (const auto& [dtype, amount] : i.by_dtype) {
        dtypes.push_back(fmt::format("{} {} ({})", name(dtype), count_text(amount.first),
                                     bytes_text(amount.second)));
    }
    add("parameters_by_dtype", "By dtype", dtypes, Show::plain);
    add("buffers", "Buffers", i.buffers, Show::count, "not trained: running means, initial states");
    add("buffer_bytes", "Buffer bytes", i.buffer_bytes, Show::bytes);
    add("constants", "Other constants", i.constants, Show::count,
        fmt::format("{}: shapes, indices, scales", bytes_text(i.constant_bytes)));
    if (i.unread > 0) {
        add("unread_constants", "Unread constants", i.unread, Show::count,
            fmt::format("tensors that no op reads, {}", bytes_text(i.unread_bytes)));
    }
    std::uint64_t elements = 0;
    std::uint64_t zeros = 0;
    std::size_t skipped = 0;
    for (const Zeros& z : s.zeros) {
        elements += z.elements;
        zeros += z.zeros;
        skipped += z.unavailable.empty() ? 0 : 1;
    }
    if (s.zeros.empty()) {
        add("zero_ratio", "Zeros", Cell::unavailable("the values were not looked at"),
            Show::percent);
    } else {
        add("zero_ratio", "Zeros", ratio(zeros, elements), Show::percent,
            skipped > 0 ? fmt::format("without {} tensors whose zeros are not known", skipped)
                        : "");
        add("zeros", "Zero count", zeros, Show::count);
    }
    return section;
}

Section compute_section(const Summary& s) {
    const Rows& r = s.rows;
    Section section{"compute", "Compute", {}};
    auto add = [&](const char* key, const char* title, Cell value, Show how,
                   std::string note = {}) {
        section.scalars.push_back({key, title, std::move(value), how, std::move(note)});
    };
    std::vector<std::string> dtypes;
    for (const auto& [dtype, macs] : r.macs_by_dtype) {
        dtypes.push_back(fmt::format("{} {:.4g} %", dtype, 100 * ratio(macs, r.total.macs)));
    }
    bool lacking = r.total.uncounted > 0;
    // What nothing is known of is not shown as 0.
    auto known = [&](std::uint64_t n) {
        return lacking && n == 0 ? Cell::unavailable("ops are not counted") : Cell(n);
    };
    add("macs", "MACs", known(r.total.macs), Show::count,
        fmt::format("{}{}", join(dtypes, ", "),
                    lacking && r.total.macs > 0 ? ", at least: some ops are not counted" : ""));
    if (r.total.macs - r.total.effective_macs > r.total.macs / 1000) {
        add("effective_macs", "Effective MACs", r.total.effective_macs, Show::count,
            "with weights that are not zero");
    }
    add("flops", "FLOPs", known(r.total.flops()), Show::count,
        fmt::format("2 × MACs + {} other", count_text(r.total.other_flops)));
    add("other_flops", "Other FLOPs", known(r.total.other_flops), Show::count);
    auto sized = [&](std::uint64_t n) {
        return r.total.unsized > 0 && n == 0 ? Cell::unavailable("shapes are unknown") : Cell(n);
    };
    std::string some_lacking =
        r.total.unsized > 0 ? fmt::format("without {} ops of unknown shapes", r.total.unsized) : "";
    add("read_bytes", "Bytes read", sized(r.total.read), Show::bytes, some_lacking);
    add("written_bytes", "Bytes written", sized(r.total.written), Show::bytes);
    std::uint64_t moved = r.total.read + r.total.written;
    add("intensity_flop_per_byte", "Intensity",
        moved == 0 ? Cell::unavailable("nothing is known to be moved")
                   : Cell(std::round(ratio(r.total.flops(), moved) * 1000) / 1000),
        Show::plain, "FLOP per byte, op by op");
    std::uint64_t unknown = 0;
    for (const Uncounted& u : r.uncounted) {
        unknown += u.ops;
    }
    std::uint64_t all = r.arithmetic + r.movement + unknown;
    std::string note =
        fmt::format("{} counted, {} without arithmetic, {} not counted", count_text(r.arithmetic),
                    count_text(r.movement), count_text(unknown));
    if (r.not_taken > 0) {
        note += fmt::format("; {} in branches not taken", count_text(r.not_taken));
    }
    add("coverage", "Coverage", all == 0 ? 1.0 : ratio(all - unknown, all), Show::percent, note);
    add("convention", "Convention", counting_convention(), Show::plain);
    return section;
}

Section memory_section(const Summary& s) {
    const Inventory& i = s.inventory;
    Section section{"memory", "Memory", {}};
    auto add = [&](const char* key, const char* title, Cell value, Show how,
                   std::string note = {}) {
        section.scalars.push_back({key, title, std::move(value), how, std::move(note)});
    };
    if (s.memory.unknown > 0 && s.memory.total_bytes == 0) {
        Cell unknown = Cell::unavailable("no shapes are known");
        add("peak_activation_bytes", "Peak activations", unknown, Show::bytes);
        return section;
    }
    std::string where = s.memory.peak == OpId::none ? "" : s.scope->graph->describe(s.memory.peak);
    std::string lacking = s.memory.unknown > 0
                              ? fmt::format("without {} tensors of unknown size", s.memory.unknown)
                              : "";
    add("peak_activation_bytes", "Peak activations", s.memory.peak_bytes, Show::bytes, lacking);
    add("peak_op", "Peak at", where, Show::plain);
    add("activation_bytes", "All activations", s.memory.total_bytes, Show::bytes);
    add("inference_bytes", "Inference", i.read_bytes + s.memory.peak_bytes, Show::bytes,
        "constants and peak activations, nothing in place");
    std::uint64_t training =
        4 * i.parameter_bytes + i.buffer_bytes + i.constant_bytes + s.memory.total_bytes;
    add("training_bytes", "Training", training, Show::bytes,
        "parameters × 4 (value, gradient, two states of Adam), all activations kept");
    return section;
}

}  // namespace trocar::summary
