#include <fmt/format.h>

#include <cstring>

#include "engines/reference/machine.h"

namespace trocar::reference {

namespace {

class ReferenceHostCall final : public HostCall {
public:
    explicit ReferenceHostCall(Call& call) : call_(call), outputs_(call.output_count()) {}

    std::size_t input_count() const override { return call_.input_count(); }
    std::size_t output_count() const override { return call_.output_count(); }
    const Value& input(std::size_t slot) override {
        static const Value none;
        const auto& inputs = call_.op().inputs;
        return inputs.at(slot) == TensorId::none ? none : call_.value(slot);
    }

    Value output(std::size_t slot, DType dtype, const Shape& shape) override {
        if (!call_.wants(slot)) {
            return {};
        }
        auto& made = outputs_.at(slot);
        if (made.body() == nullptr) {
            count(shape);
            made = Value::tensor(dtype, shape);
            if (passes(slot, dtype, shape)) {
                const auto from = call_.value(slot).bytes();
                std::memcpy(made.mutable_bytes().data(), from.data(), from.size());
            }
        }
        return made;
    }

    void give(std::size_t slot, const Value& value) override {
        if (call_.wants(slot) && outputs_.at(slot).body() != value.body()) {
            outputs_[slot] = value;
        }
    }

    // What the callback said nothing of is passed on.
    void close() {
        for (std::size_t i = 0; i < outputs_.size(); ++i) {
            if (outputs_[i].body() == nullptr && i < call_.input_count() &&
                call_.op().type != "Call") {
                outputs_[i] = input(i);
            }
            call_.give(i, outputs_[i]);
        }
    }

private:
    // A tap's output starts as what it passes on.
    bool passes(std::size_t slot, DType dtype, const Shape& shape) const {
        if (call_.op().type == "Call" || slot >= call_.input_count()) {
            return false;
        }
        const auto& from = call_.value(slot);
        return from.is_tensor() && from.dtype() == dtype && from.shape() == shape &&
               !from.bytes().empty();
    }

    Call& call_;
    std::vector<Value> outputs_;
};

void call_back(Call& call) {
    require(static_cast<bool>(call.machine().host()), "nobody is there to be called back");
    ReferenceHostCall made(call);
    const auto site = call.integer("site", 0);
    try {
        call.machine().host()(site, made);
    } catch (...) {
        throw HostFailure{std::current_exception()};
    }
    made.close();
}

}  // namespace

Kernel find_host_kernel(std::string_view op) {
    return op == "Tap" || op == "Look" || op == "Call" ? call_back : nullptr;
}

}  // namespace trocar::reference
