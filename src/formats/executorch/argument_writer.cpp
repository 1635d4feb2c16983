#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "formats/executorch/plan_writer.h"
#include "formats/executorch/types.h"
#include "trocar/error.h"
#include "util/text.h"

// Calls of kernels: all of their arguments in order, also those that a graph leaves at their
// defaults.
namespace trocar::executorch {

namespace {

// The number that was meant: 1e-05 and not the nearest one of 32 bits.
double meant(float number) {
    return std::strtod(fmt::format("{}", number).c_str(), nullptr);
}

// Attributes that say what the result is, which its tensor says too, or how pt2 files call inputs.
bool is_told_by_result(std::string_view name) {
    return name == "dtype" || name == "layout" || name == "device" || name == "pin_memory" ||
           name == "inputs" || name == "outputs";
}

// "[0,0]"
std::vector<std::int64_t> list_in(std::string_view text) {
    std::vector<std::int64_t> numbers;
    text = text.substr(1, text.size() - 2);
    if (!text.empty()) {
        for (const auto& word : split(text, ',')) {
            numbers.push_back(std::strtoll(word.c_str(), nullptr, 10));
        }
    }
    return numbers;
}

}  // namespace

PlanWriter::Slots PlanWriter::slots_of(OpId id, const Kernel& kernel) const {
    const auto& op = graph_.op(id);
    Slots slots;
    if (const auto* attribute = op.attribute("inputs")) {
        const auto* names = std::get_if<std::vector<std::string>>(&attribute->value);
        if (names == nullptr || names->size() != op.inputs.size()) {
            fail(id, "its attribute 'inputs' does not name all of its inputs");
        }
        for (std::size_t i = 0; i < names->size(); ++i) {
            slots[(*names)[i].substr(0, (*names)[i].find('['))].push_back(op.inputs[i]);
        }
        return slots;
    }
    // In the order of the arguments; a list takes what the others leave.
    auto left = static_cast<std::size_t>(
        std::count_if(kernel.arguments.begin(), kernel.arguments.end(),
                      [](const Parameter& p) { return p.kind == 't' && !p.list; }));
    std::size_t next = 0;
    for (const auto& parameter : kernel.arguments) {
        if (parameter.kind != 't') {
            continue;
        }
        left -= parameter.list ? 0 : 1;
        const auto remain = op.inputs.size() - next;
        const auto take =
            parameter.list ? remain - std::min(left, remain) : std::min<std::size_t>(1, remain);
        for (std::size_t i = 0; i < take; ++i) {
            slots[parameter.name].push_back(op.inputs[next++]);
        }
    }
    if (next < op.inputs.size()) {
        fail(id, fmt::format("it has {} inputs, and the kernel takes {}", op.inputs.size(), next));
    }
    return slots;
}

std::int32_t PlanWriter::otherwise(const Parameter& parameter) {
    const auto& said = *parameter.otherwise;
    if (said == "none") {
        return null();
    }
    if (parameter.list) {
        std::vector<std::int32_t> items;
        for (const auto number : list_in(said)) {
            items.push_back(integer(number));
        }
        return integers(items);
    }
    switch (parameter.kind) {
        case 'b':
            return truth(said != "0");
        case 's':
            return text(said);
        case 'f':
            return real(std::strtod(said.c_str(), nullptr));
        case 'n':
            if (said.find('.') != std::string::npos) {
                return real(std::strtod(said.c_str(), nullptr));
            }
            return integer(std::strtoll(said.c_str(), nullptr, 10));
        default:
            return integer(std::strtoll(said.c_str(), nullptr, 10));
    }
}

std::int32_t PlanWriter::list_of(OpId op, const Parameter& parameter, const Attribute::Value& value,
                                 const Slots& slots) {
    std::vector<std::int64_t> numbers;
    if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&value)) {
        numbers = *whole;
    } else if (const auto* one = std::get_if<std::int64_t>(&value)) {
        numbers = {*one};
    } else if (const auto* fractions = std::get_if<std::vector<float>>(&value);
               fractions != nullptr && (parameter.kind == 'f' || fractions->empty())) {
        std::vector<double> list;
        std::transform(fractions->begin(), fractions->end(), std::back_inserter(list), meant);
        if (parameter.kind == 'f') {
            return add(fb::KernelTypes::DoubleList,
                       fb::CreateDoubleList(builder_, builder_.CreateVector(list)).Union());
        }
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value);
               texts != nullptr && parameter.kind == 'i') {
        // "*" stands for a number that is computed.
        const auto found = slots.find(parameter.name);
        std::vector<std::int32_t> items;
        std::size_t next = 0;
        for (const auto& word : *texts) {
            if (word != "*") {
                items.push_back(integer(std::strtoll(word.c_str(), nullptr, 10)));
            } else if (found == slots.end() || next >= found->second.size()) {
                fail(op, fmt::format("its list '{}' lacks an input", parameter.name));
            } else {
                items.push_back(value_of(found->second[next++]));
            }
        }
        return integers(items);
    } else {
        fail(op, fmt::format("its argument '{}' is of another kind than the kernel takes",
                             parameter.name));
    }
    if (parameter.kind == 'b') {
        const std::vector<std::uint8_t> list(numbers.begin(), numbers.end());
        return add(fb::KernelTypes::BoolList,
                   fb::CreateBoolList(builder_, builder_.CreateVector(list)).Union());
    }
    if (parameter.kind == 'f') {
        const std::vector<double> list(numbers.begin(), numbers.end());
        return add(fb::KernelTypes::DoubleList,
                   fb::CreateDoubleList(builder_, builder_.CreateVector(list)).Union());
    }
    std::vector<std::int32_t> items;
    for (const auto number : numbers) {
        items.push_back(integer(number));
    }
    return integers(items);
}

std::int32_t PlanWriter::given(OpId op, const Parameter& parameter, const Attribute::Value& value,
                               const Slots& slots) {
    if (parameter.list) {
        return list_of(op, parameter, value, slots);
    }
    const auto* whole = std::get_if<std::int64_t>(&value);
    const auto* fraction = std::get_if<float>(&value);
    const auto* words = std::get_if<std::string>(&value);
    const auto* constant = std::get_if<Constant>(&value);
    if (constant != nullptr && constant->dtype() == DType::f64 && constant->element_count() == 1) {
        double number = 0;
        std::copy_n(constant->bytes().begin(), sizeof number,
                    reinterpret_cast<std::byte*>(&number));
        return real(number);
    }
    switch (parameter.kind) {
        case 'b':
            if (whole != nullptr) {
                return truth(*whole != 0);
            }
            break;
        case 'i':
            if (whole != nullptr) {
                return integer(*whole);
            }
            break;
        case 'f':
        case 'n':
            if (whole != nullptr) {
                return parameter.kind == 'f' ? real(static_cast<double>(*whole)) : integer(*whole);
            }
            if (fraction != nullptr) {
                return real(meant(*fraction));
            }
            break;
        case 's':
            if (words != nullptr) {
                return text(*words);
            }
            break;
        case 'd':
        case 'm':
            if (whole != nullptr) {
                return integer(*whole);
            }
            if (words != nullptr) {
                const auto number = parameter.kind == 'd' ? scalar_type_number(*words)
                                                          : memory_format_number(*words);
                if (number) {
                    return integer(*number);
                }
                fail(op,
                     fmt::format("ExecuTorch has no '{}', which '{}' is", *words, parameter.name));
            }
            break;
        default:
            break;
    }
    fail(op,
         fmt::format("its argument '{}' is of another kind than the kernel takes", parameter.name));
}

std::int32_t PlanWriter::argument(OpId op, const Parameter& parameter, const Slots& slots) {
    const auto found = slots.find(parameter.name);
    const auto* attribute = graph_.op(op).attribute(parameter.name);
    if (parameter.kind == 't' && parameter.list) {
        return tensor_list(found == slots.end() ? std::vector<TensorId>() : found->second,
                           parameter.optional);
    }
    if (parameter.kind == 't' || (found != slots.end() && attribute == nullptr)) {
        const auto id = found == slots.end() ? TensorId::none : found->second.front();
        if (id != TensorId::none) {
            return value_of(id);
        }
        if (!parameter.optional) {
            fail(op, fmt::format("it has no input '{}'", parameter.name));
        }
        return null();
    }
    if (attribute != nullptr) {
        return given(op, parameter, attribute->value, slots);
    }
    if (parameter.otherwise) {
        return otherwise(parameter);
    }
    if (!parameter.optional) {
        fail(op, fmt::format("it has no argument '{}'", parameter.name));
    }
    return null();
}

std::int32_t PlanWriter::result(OpId op, const Parameter& parameter, TensorId id) {
    if (id == TensorId::none) {
        fail(op, fmt::format("it has no tensor for its result '{}'", parameter.name));
    }
    if (parameter.kind == 't') {
        return value_of(id);
    }
    const auto dtype = graph_.tensor(id).type.dtype;
    return tensors_[id] = dtype == DType::boolean
                              ? add(fb::KernelTypes::Bool, fb::CreateBool(builder_, false).Union())
                          : is_float(dtype)
                              ? add(fb::KernelTypes::Double, fb::CreateDouble(builder_, 0).Union())
                              : add(fb::KernelTypes::Int, fb::CreateInt(builder_, 0).Union());
}

void PlanWriter::kernel(OpId id) {
    const auto& op = graph_.op(id);
    const auto* kernel = kernel_for(op.domain, op.type, op.overload);
    if (kernel == nullptr) {
        fail(id, fmt::format("ExecuTorch has no kernel for {}::{}{}{}",
                             op.domain.empty() ? "aten" : op.domain, op.type,
                             op.overload.empty() ? "" : ".", op.overload));
    }
    if (kernel->results.empty()) {
        fail(id, "ops that work in place cannot be written anew");
    }
    const auto slots = slots_of(id, *kernel);
    const auto known = [&](const std::string& name) {
        return std::any_of(kernel->arguments.begin(), kernel->arguments.end(),
                           [&](const Parameter& p) { return p.name == name; });
    };
    for (const auto& attribute : op.attributes) {
        if (!known(attribute.name) && !is_told_by_result(attribute.name)) {
            fail(id, fmt::format("the kernel has no argument '{}'", attribute.name));
        }
    }
    std::vector<std::int32_t> args;
    for (const auto& parameter : kernel->arguments) {
        args.push_back(argument(id, parameter, slots));
    }
    std::vector<std::int32_t> results;
    if (kernel->results.front().list) {
        results.push_back(tensor_list(op.outputs, false));
    } else {
        for (std::size_t i = 0; i < kernel->results.size(); ++i) {
            results.push_back(result(id, kernel->results[i],
                                     i < op.outputs.size() ? op.outputs[i] : TensorId::none));
        }
    }
    args.insert(args.end(), results.begin(), results.end());
    // Then what the call returns: the result once more, or a list of several.
    if (kernel->returns()) {
        args.push_back(results.size() == 1 ? results.front() : tensor_list(op.outputs, false));
    }
    const auto [at, is_new] =
        operator_numbers_.try_emplace(kernel, static_cast<std::int32_t>(operators_.size()));
    if (is_new) {
        operators_.push_back(fb::CreateOperator(builder_,
                                                builder_.CreateString(kernel->name_in_file()),
                                                builder_.CreateString(kernel->in_file)));
    }
    append(fb::InstructionArguments::KernelCall,
           fb::CreateKernelCall(builder_, at->second, builder_.CreateVector(args)).Union());
}

}  // namespace trocar::executorch
