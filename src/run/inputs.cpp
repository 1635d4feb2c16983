#include "trocar/inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/dimensions.h"
#include "run/input_source.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "util/aten_types.h"
#include "util/text.h"

namespace trocar {

namespace {

// "'a', 'b' and 'c'"
std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const bool last = i + 1 == names.size();
        text += fmt::format("{}'{}'", i == 0 ? "" : last ? " and " : ", ", names[i]);
    }
    return text;
}

// One input of the model on its way to a value.
struct Slot {
    std::string name;
    const Type* type = nullptr;
    bool required = true;
    bool assumed = false;        // the element type, which a given value may correct
    std::optional<Shape> shape;  // from --shape
    std::optional<Fill> fill;
    std::optional<Value> value;
    std::string origin;
    bool faulty = false;  // something about it was already reported

    bool given() const { return value || fill || faulty; }
};

class InputMaker {
public:
    InputMaker(const Model& model, const InputSpec& spec)
        : spec_(spec), dimensions_(spec.unknown_dims) {
        for (const auto id : model.graph.inputs()) {
            const auto& tensor = model.graph.tensor(id);
            names_.push_back(tensor.name);
            auto& slot = slots_.emplace_back();
            slot.name = tensor.name;
            slot.type = &tensor.type;
            slot.assumed = has_assumed_type(tensor);
            slot.required = !tensor.constant && tensor.type.kind != Type::Kind::optional;
            for (const auto& dim : Dimensions::of(tensor.type)) {
                if (!dim.symbol.empty() && !known(symbols_, dim.symbol)) {
                    symbols_.push_back(dim.symbol);
                }
            }
        }
    }

    Inputs make() {
        if (!spec_.fill.empty()) {
            fill_ = parse_fill(spec_.fill);
            if (!fill_) {
                throw Error(Fault::usage, fmt::format("'{}' is no way to fill inputs", spec_.fill),
                            "write random, random(LOW,HIGH), zeros, ones or a number");
            }
        }
        take_shapes();
        for (const auto& text : spec_.sources) {
            take_source(text);
        }
        for (auto& slot : slots_) {
            check_value(slot);
        }
        for (auto& slot : slots_) {
            generate_value(slot);
        }
        if (!faults_.empty()) {
            throw_faults();
        }
        return collect();
    }

private:
    static bool known(const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    }

    Slot* find(const std::string& name) {
        const auto found = std::find_if(slots_.begin(), slots_.end(),
                                        [&](const Slot& slot) { return slot.name == name; });
        return found == slots_.end() ? nullptr : &*found;
    }

    void fault(std::string sentence, std::string hint = {}) {
        faults_.push_back(std::move(sentence));
        if (!hint.empty() && !known(hints_, hint)) {
            hints_.push_back(std::move(hint));
        }
    }

    std::string inputs_hint(const std::string& name) {
        auto hint = did_you_mean(name, names_);
        if (hint.empty() && !names_.empty()) {
            hint = fmt::format("the model's inputs are {}", listed(names_));
        }
        return hint;
    }

    // --- Shapes ------------------------------------------------------------------------------

    void take_shapes() {
        auto everything = names_;
        everything.insert(everything.end(), symbols_.begin(), symbols_.end());
        for (const auto& text : spec_.shapes) {
            const auto [name, rest] = parse_assignment(text, everything);
            const auto shape = parse_shape(rest);
            if (!shape) {
                throw Error(Fault::usage,
                            fmt::format("'{}' in --shape {} is not a shape", rest, text),
                            "write NAME=1,3,224,224 for an input, or SYMBOL=4 for a dimension");
            }
            take_shape(name, *shape, everything);
        }
        for (auto& slot : slots_) {
            if (slot.shape) {
                check_shape(slot);
            }
        }
    }

    void take_shape(const std::string& name, const Shape& shape,
                    const std::vector<std::string>& everything) {
        auto* slot = name.empty() && slots_.size() == 1 ? &slots_.front() : find(name);
        const bool symbol = known(symbols_, name) && shape.size() == 1;
        // A name may be both: then the number of dimensions tells.
        if (slot != nullptr && !(symbol && Dimensions::of(*slot->type).size() != 1)) {
            slot->shape = shape;
        } else if (symbol) {
            dimensions_.choose(name, shape.front());
        } else if (name.empty()) {
            fault(fmt::format("--shape {} does not say which input it is for", shape_text(shape)),
                  fmt::format("the model's inputs are {}", listed(names_)));
        } else if (known(symbols_, name)) {
            fault(fmt::format("'{}' is one dimension, but --shape gives {}", name,
                              shape_text(shape)));
        } else {
            auto hint = did_you_mean(name, everything);
            if (hint.empty()) {
                hint = symbols_.empty()
                           ? inputs_hint(name)
                           : fmt::format("the model's dimensions are {}", listed(symbols_));
            }
            fault(
                fmt::format("--shape names '{}', which is neither an input nor a dimension", name),
                hint);
        }
    }

    void check_shape(Slot& slot) {
        if (slot.type->kind == Type::Kind::tensor && !dimensions_.fits(*slot.shape, *slot.type)) {
            fault(fmt::format("--shape gives input '{}' {}, but the model takes {}", slot.name,
                              shape_text(*slot.shape), dimensions_.text(*slot.type)));
            slot.faulty = true;
            return;
        }
        dimensions_.learn(*slot.shape, *slot.type);
    }

    // --- Sources -----------------------------------------------------------------------------

    void take_source(const std::string& text) {
        auto source = read_source(text, names_);
        if (!source.name.empty() && find(source.name) == nullptr) {
            fault(fmt::format("the model has no input '{}'", source.name),
                  inputs_hint(source.name));
            return;
        }
        if (source.values.empty() || source.values.size() == 1) {
            take_one(source);
        } else {
            take_many(source);
        }
    }

    // The input that a source without a name is for: the only one that has to be given.
    Slot* only_slot() {
        Slot* only = nullptr;
        for (auto& slot : slots_) {
            if (slot.required) {
                if (only != nullptr) {
                    return nullptr;
                }
                only = &slot;
            }
        }
        return only == nullptr && slots_.size() == 1 ? &slots_.front() : only;
    }

    void take_one(InputSource& source) {
        Slot* slot = find(source.name);
        if (source.name.empty()) {
            slot = source.values.empty() ? nullptr : find(source.values.front().name);
            if (slot == nullptr && source.by_position && !slots_.empty()) {
                slot = &slots_.front();
            }
            slot = slot == nullptr ? only_slot() : slot;
        }
        if (slot == nullptr) {
            fault(fmt::format("'{}' does not say which input it is for", source.origin),
                  names_.empty() ? "the model has no inputs"
                                 : fmt::format("write {}={}", names_.front(), source.origin));
            return;
        }
        if (!claim(*slot, source.origin)) {
            return;
        }
        if (source.fill) {
            slot->fill = source.fill;
        } else if (!source.raw_path.empty()) {
            take_raw(*slot, source);
        } else if (source.values.empty()) {
            fault(fmt::format("'{}' holds no arrays", source.origin));
            slot->faulty = true;
        } else {
            slot->value = source.values.front().value;
        }
    }

    void take_many(InputSource& source) {
        if (!source.name.empty() && !source.by_position) {
            const auto found =
                std::find_if(source.values.begin(), source.values.end(),
                             [&](const NamedValue& value) { return value.name == source.name; });
            if (found == source.values.end()) {
                fault(fmt::format("'{}' holds {}, none named '{}'", source.origin,
                                  counted(source.values.size(), "array"), source.name),
                      fmt::format("write {}={}:KEY", source.name, source.origin));
                find(source.name)->faulty = true;
                return;
            }
            source.values = {std::move(*found)};
            take_one(source);
            return;
        }
        for (std::size_t i = 0; i < source.values.size(); ++i) {
            auto& value = source.values[i];
            Slot* slot = find(value.name);
            if (slot == nullptr && source.by_position) {
                slot = i < slots_.size() ? &slots_[i] : nullptr;
            }
            if (slot == nullptr) {
                fault(source.by_position
                          ? fmt::format("'{}' holds {}, but the model has {}", source.origin,
                                        counted(source.values.size(), "array"),
                                        counted(slots_.size(), "input"))
                          : fmt::format("'{}' holds '{}', which is no input of the model",
                                        source.origin, value.name),
                      inputs_hint(value.name));
                if (source.by_position) {
                    return;
                }
            } else if (claim(*slot, source.origin)) {
                slot->value = value.value;
            }
        }
    }

    bool claim(Slot& slot, const std::string& origin) {
        if (slot.given() && !slot.origin.empty()) {
            fault(fmt::format("input '{}' is given twice: '{}' and '{}'", slot.name, slot.origin,
                              origin));
            return false;
        }
        slot.origin = origin;
        return true;
    }

    void take_raw(Slot& slot, const InputSource& source) {
        const auto dtype = source.raw_dtype.value_or(slot.type->dtype);
        auto shape = source.raw_shape ? source.raw_shape : slot.shape;
        std::vector<std::string> unknown;
        if (!shape) {
            shape = dimensions_.concrete(*slot.type, unknown);
        }
        if (!shape || dtype == DType::undefined) {
            fault(fmt::format("the type or shape of '{}' for input '{}' ({}) is not known",
                              source.origin, slot.name, type_text(*slot.type)),
                  fmt::format("write {}={}:f32:1x3x224x224", slot.name, source.raw_path));
            slot.faulty = true;
            return;
        }
        try {
            slot.value = read_raw(source.raw_path, dtype, *shape);
        } catch (const Error& error) {
            fault(fmt::format("input '{}': {}", slot.name, error.what()), error.hint());
            slot.faulty = true;
        }
    }

    // --- Values ------------------------------------------------------------------------------

    void check_value(Slot& slot) {
        if (!slot.value) {
            return;
        }
        auto wanted = *slot.type;
        if (slot.assumed) {
            wanted.dtype = DType::undefined;
        }
        if (!dimensions_.fits(*slot.value, wanted)) {
            fault(fmt::format("input '{}' is {} in '{}', but the model takes {}", slot.name,
                              value_text(*slot.value), slot.origin, dimensions_.text(*slot.type)));
            return;
        }
        if (!slot.value->is_tensor()) {
            return;
        }
        if (slot.shape && *slot.shape != slot.value->shape()) {
            fault(fmt::format("input '{}' is {} in '{}', but --shape gives {}", slot.name,
                              value_text(*slot.value), slot.origin, shape_text(*slot.shape)));
        }
        dimensions_.learn(slot.value->shape(), *slot.type);
    }

    void generate_value(Slot& slot) {
        if (slot.value || slot.faulty) {
            return;
        }
        if (!slot.fill) {
            const bool optional = slot.type->kind == Type::Kind::optional;
            if (!slot.required && !(optional && fill_)) {
                return;
            }
            if (!fill_) {
                std::string hint;
                if (!missing_) {
                    hint = fmt::format(
                        "give it with --input {}=FILE, or all that is missing with --fill random",
                        slot.name);
                }
                missing_ = true;
                fault(fmt::format("input '{}' ({}) is not given", slot.name, type_text(*slot.type)),
                      std::move(hint));
                return;
            }
            slot.fill = fill_;
        }
        std::vector<std::string> unknown;
        try {
            slot.value = generated(slot, *slot.type, unknown);
        } catch (const Error& error) {
            fault(error.what(), error.hint());
            return;
        }
        if (!slot.value) {
            fault(fmt::format("input '{}' ({}): {} must be given", slot.name, type_text(*slot.type),
                              join(unknown, ", ")));
            for (auto& size : dimensions_.missing(slot.name, *slot.type)) {
                if (!known(sizes_, size)) {
                    sizes_.push_back(std::move(size));
                }
            }
        } else if (!unknown.empty()) {
            notes_.push_back(fmt::format("input '{}': {} taken as {}", slot.name,
                                         join(unknown, ", "), *spec_.unknown_dims));
        }
    }

    std::optional<Value> generated(Slot& slot, const Type& type,
                                   std::vector<std::string>& unknown) {
        switch (type.kind) {
            case Type::Kind::tensor:
            case Type::Kind::sparse_tensor: {
                const auto shape = slot.shape ? slot.shape : dimensions_.concrete(type, unknown);
                if (!shape) {
                    return std::nullopt;
                }
                slot.origin = fill_text(*slot.fill, type.dtype);
                return generate(*slot.fill, type.dtype, *shape, slot.name, spec_.seed);
            }
            case Type::Kind::optional:
            case Type::Kind::sequence:
                if (type.element.size() == 1) {
                    auto item = generated(slot, type.element.front(), unknown);
                    return item && type.kind == Type::Kind::sequence ? Value::sequence({*item})
                                                                     : item;
                }
                break;
            default:
                break;
        }
        throw Error(Fault::input,
                    fmt::format("input '{}' ({}) cannot be generated", slot.name, type_text(type)),
                    "give it as a file");
    }

    // --- Result ------------------------------------------------------------------------------

    [[noreturn]] void throw_faults() {
        if (!sizes_.empty()) {
            hints_.push_back(
                fmt::format("sizes are given with --shape {}", join(sizes_, " --shape ")));
        }
        std::string hint;
        for (const auto& one : hints_) {
            hint += hint.empty() ? "" : hint.ends_with('?') ? " " : "; ";
            hint += one;
        }
        if (faults_.size() == 1) {
            throw Error(Fault::input, faults_.front(), hint);
        }
        throw Error(Fault::input,
                    fmt::format("the inputs do not fit the model: {}", join(faults_, "; ")), hint);
    }

    Inputs collect() {
        Inputs inputs;
        for (auto& slot : slots_) {
            if (slot.value) {
                inputs.values.push_back({slot.name, std::move(*slot.value)});
                inputs.origins.push_back(slot.origin);
            }
        }
        inputs.notes = std::move(notes_);
        return inputs;
    }

    const InputSpec& spec_;
    std::optional<Fill> fill_;
    std::vector<Slot> slots_;
    std::vector<std::string> names_;    // of the inputs
    std::vector<std::string> symbols_;  // of their dimensions
    Dimensions dimensions_;
    bool missing_ = false;  // the hint on missing inputs was given
    std::vector<std::string> faults_;
    std::vector<std::string> hints_;
    std::vector<std::string> sizes_;  // that --shape must give: "batch=1"
    std::vector<std::string> notes_;
};

}  // namespace

Inputs make_inputs(const Model& model, const InputSpec& spec) {
    return InputMaker(model, spec).make();
}

void declare_input_options(Args& args, InputSpec& spec) {
    args.option(
        "-i,--input", spec.sources, "[NAME=]SOURCE",
        "Value of an input: a file (.npy, .npz, .pb), a folder with input_0.pb…, raw elements "
        "FILE:f32:1x3x224x224, or random, random(LOW,HIGH), zeros, ones, a number");
    args.option("--shape", spec.shapes, "NAME=DIMS",
                "Shape of a generated input (x=1,3,224,224) or size of a dimension (batch=4)");
    args.option(
        "--fill", spec.fill, "HOW",
        "What to generate for inputs that are not given: random, random(LOW,HIGH), zeros, ones, "
        "a number");
}

}  // namespace trocar
