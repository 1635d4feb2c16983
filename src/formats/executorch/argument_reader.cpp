#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/executorch/plan_reader.h"
#include "formats/executorch/types.h"

// What the arguments of a kernel become: inputs, attributes, outputs.
namespace trocar::executorch {

namespace {

constexpr std::string_view out_end = "_out";
constexpr std::size_t most_arguments = 1024;

bool is_scalar(fb::KernelTypes type) {
    return type == fb::KernelTypes::Int || type == fb::KernelTypes::Bool ||
           type == fb::KernelTypes::Double;
}

Attribute::Value real(double number) {
    if (std::isfinite(number) && std::abs(number) > std::numeric_limits<float>::max()) {
        return Constant::of(DType::f64, {}, std::vector<double>{number});
    }
    return static_cast<float>(number);
}

}  // namespace

void PlanReader::set_attribute(Draft& draft, const std::string& name, Attribute::Value value) {
    auto& attributes = draft.spec.attributes;
    auto free = name;
    const auto taken = [&](const Attribute& a) { return a.name == free; };
    while (free == "inputs" || std::any_of(attributes.begin(), attributes.end(), taken)) {
        free += "'";
    }
    attributes.push_back(
        {.name = std::move(free), .value = std::move(value), .reference = {}, .source = {}});
}

void PlanReader::add_input(Draft& draft, const std::string& slot, std::int64_t number) {
    draft.spec.inputs.push_back(number < 0 ? TensorId::none : tensor_at(number));
    draft.slots.push_back(slot);
}

void PlanReader::add_kernel(const fb::KernelCall& call, Draft& draft) {
    if (call.op_index() < 0 ||
        call.op_index() >= static_cast<std::int64_t>(size_of(plan_.operators()))) {
        file_.fail(fmt::format("there is no operator {}", call.op_index()));
    }
    const auto& op = *plan_.operators()->Get(static_cast<flatbuffers::uoffset_t>(call.op_index()));
    const auto name = text_of(op.name());
    const auto overload = text_of(op.overload());
    auto& spec = draft.spec;
    const auto colons = name.find("::");
    const bool named = colons != std::string_view::npos;
    spec.domain = named ? name.substr(0, colons) : std::string_view();
    spec.domain = spec.domain == "aten" ? std::string() : spec.domain;
    spec.type = named ? name.substr(colons + 2) : name;
    if (spec.type.empty()) {
        file_.fail(fmt::format("operator {} has no name", call.op_index()));
    }
    file_.spend(2 * (name.size() + overload.size()));
    if (size_of(call.args()) > most_arguments) {
        file_.fail(fmt::format("a call of {} has {} arguments, and {} are the limit", name,
                               size_of(call.args()), most_arguments));
    }
    const auto args = numbers_of(call.args());
    file_.spend(args.size() * (sizeof(Attribute) / 2));
    const auto* kernel = find_kernel(name, overload);
    const auto least = kernel != nullptr ? kernel->arguments.size() + kernel->results.size() : 0;
    if (kernel != nullptr && args.size() >= least) {
        add_known(*kernel, args, draft);
    } else {
        add_unknown(overload, args, draft);
    }
}

void PlanReader::add_known(const Kernel& kernel, const std::vector<std::int64_t>& args,
                           Draft& draft) {
    draft.spec.overload = kernel.overload;
    const auto inputs = kernel.arguments.size();
    for (std::size_t i = 0; i < inputs; ++i) {
        add_argument(draft, kernel.arguments[i], args[i]);
    }
    for (std::size_t i = 0; i < kernel.results.size(); ++i) {
        add_result(draft, args[inputs + i], i);
    }
    if (kernel.results.empty()) {
        for (std::size_t i = 0; i < inputs; ++i) {
            if (kernel.arguments[i].changed) {
                add_result(draft, args[i], draft.returns.size());
            }
        }
    }
}

// Arguments of a kernel that nobody told of have their places as names.
void PlanReader::add_unknown(std::string_view overload, const std::vector<std::int64_t>& args,
                             Draft& draft) {
    if (overload == "out" || overload.empty()) {
        draft.spec.overload = "default";
    } else {
        draft.spec.overload = overload.ends_with(out_end)
                                  ? overload.substr(0, overload.size() - out_end.size())
                                  : overload;
    }
    // What a call returns stands behind its arguments: one tensor that is its last argument too, or
    // a list of several that are.
    std::vector<std::int64_t> results;
    auto inputs = args.size();
    if (!args.empty()) {
        results = {args.back()};
        --inputs;
        if (const auto* list = value(args.back()).val_as_TensorList()) {
            const auto items = numbers_of(list->items());
            const auto count = std::min(items.size(), inputs);
            const auto first = args.begin() + static_cast<std::ptrdiff_t>(inputs - count);
            if (count == items.size() && std::equal(items.begin(), items.end(), first)) {
                results = items;
                inputs -= count;
            }
        } else if (inputs > 0 && args[inputs - 1] == args.back()) {
            --inputs;
        }
    }
    for (std::size_t i = 0; i < inputs; ++i) {
        Parameter parameter;
        parameter.name = std::to_string(i);
        parameter.kind = 'n';
        add_argument(draft, parameter, args[i]);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        add_result(draft, results[i], i);
    }
}

void PlanReader::add_argument(Draft& draft, const Parameter& parameter, std::int64_t number) {
    const auto& stored = value(number);
    const auto& name = parameter.name;
    const auto text = [&](std::int64_t integer) -> Attribute::Value {
        switch (parameter.kind) {
            case 'd':
                return scalar_type_name(integer);
            case 'm':
                return memory_format_name(integer);
            default:
                return integer;
        }
    };
    if (is_scalar(stored.val_type()) && place(number).computed) {
        add_input(draft, name, number);
    } else if (stored.val_type() == fb::KernelTypes::Tensor) {
        add_input(draft, name, number);
    } else if (const auto* integer = stored.val_as_Int()) {
        set_attribute(draft, name, text(integer->int_val()));
    } else if (const auto* truth = stored.val_as_Bool()) {
        set_attribute(draft, name, std::int64_t{truth->bool_val() ? 1 : 0});
    } else if (const auto* fraction = stored.val_as_Double()) {
        set_attribute(draft, name, real(fraction->double_val()));
    } else if (const auto* word = stored.val_as_String()) {
        file_.spend(text_of(word->string_val()).size());
        set_attribute(draft, name, std::string(text_of(word->string_val())));
    } else if (const auto* integers = stored.val_as_IntList()) {
        add_integers(draft, name, *integers);
    } else if (const auto* fractions = stored.val_as_DoubleList()) {
        std::vector<float> list;
        for (flatbuffers::uoffset_t i = 0; i < size_of(fractions->items()); ++i) {
            list.push_back(static_cast<float>(item_of(fractions->items(), i)));
        }
        file_.spend(list.size() * sizeof(float));
        set_attribute(draft, name, std::move(list));
    } else if (const auto* truths = stored.val_as_BoolList()) {
        std::vector<std::int64_t> list;
        for (flatbuffers::uoffset_t i = 0; i < size_of(truths->items()); ++i) {
            list.push_back(truths->items()->Get(i) != 0 ? 1 : 0);
        }
        file_.spend(list.size() * sizeof(std::int64_t));
        set_attribute(draft, name, std::move(list));
    } else if (const auto* tensors = stored.val_as_TensorList()) {
        add_tensors(draft, name, tensors->items());
    } else if (const auto* optional = stored.val_as_OptionalTensorList()) {
        add_tensors(draft, name, optional->items());
    } else if (parameter.kind == 't') {
        add_input(draft, name, -1);
    }
}

void PlanReader::add_tensors(Draft& draft, const std::string& name,
                             const flatbuffers::Vector<std::int32_t>* items) {
    const auto numbers = numbers_of(items);
    file_.spend(numbers.size() * (name.size() + sizeof(std::string)));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        // None is -1, or a value that is None.
        const bool none = numbers[i] == -1 || value(numbers[i]).val_type() == fb::KernelTypes::Null;
        add_input(draft, fmt::format("{}[{}]", name, i), none ? -1 : numbers[i]);
    }
    if (numbers.empty()) {
        set_attribute(draft, name, std::vector<std::string>());
    }
}

// Numbers of which some are known only at run time: the list is an attribute of texts in which a
// "*" stands for each number that is an input.
void PlanReader::add_integers(Draft& draft, const std::string& name, const fb::IntList& list) {
    const auto count = size_of(list.items());
    file_.spend(count * sizeof(std::int64_t));
    std::vector<std::int64_t> numbers;
    std::vector<std::string> texts;
    bool computed = false;
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
        const auto number = item_of(list.items(), i);
        const auto* integer = value(number).val_as_Int();
        if (integer == nullptr) {
            file_.fail(fmt::format("value {} in a list of integers is none", number));
        }
        numbers.push_back(integer->int_val());
        computed = computed || place(number).computed;
    }
    if (!computed) {
        set_attribute(draft, name, std::move(numbers));
        return;
    }
    file_.spend(count * sizeof(std::string));
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
        const auto number = item_of(list.items(), i);
        if (place(number).computed) {
            add_input(draft, fmt::format("{}[{}]", name, i), number);
            texts.emplace_back("*");
        } else {
            texts.push_back(std::to_string(numbers[i]));
        }
    }
    set_attribute(draft, name, std::move(texts));
}

void PlanReader::add_result(Draft& draft, std::int64_t number, std::size_t result) {
    const auto& stored = value(number);
    const auto add = [&](std::int64_t at, std::string label) {
        draft.spec.outputs.push_back(tensor_after(at));
        draft.returns.push_back(std::move(label));
    };
    if (const auto* list = stored.val_as_TensorList()) {
        draft.grouped = true;
        const auto numbers = numbers_of(list->items());
        file_.spend(numbers.size() * sizeof(Tensor) / 4);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            add(numbers[i], fmt::format("{}[{}]", result, i));
        }
        return;
    }
    if (stored.val_type() == fb::KernelTypes::Tensor || is_scalar(stored.val_type())) {
        add(number, std::to_string(result));
    }
}

}  // namespace trocar::executorch
