#include "engines/onnxruntime/host_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "engines/onnxruntime/values.h"
#include "trocar/error.h"

namespace trocar::ort {

namespace {

// No tap passes on more tensors than this in place; those beyond are copied.
constexpr int most_in_place = 64;

constexpr int failed = 1;  // the engine's code for a failure of no particular kind

}  // namespace

// The engine's view of a custom op comes first, so that it can be cast back.
struct HostOps::Definition : CustomOp {
    HostOps* owner = nullptr;
    const char* name = nullptr;
};

namespace {

using Definition = HostOps::Definition;

const Definition& definition(const CustomOp* op) {
    return *static_cast<const Definition*>(op);
}

// One op of a compiled program.
struct Kernel {
    HostOps* owner = nullptr;
    std::int64_t site = 0;
};

class OrtHostCall final : public HostCall {
public:
    OrtHostCall(const std::shared_ptr<Environment>& environment, KernelContext* context)
        : environment_(environment), context_(context) {
        check(api()(kernel_input_count, context_, &input_count_));
        check(api()(kernel_output_count, context_, &output_count_));
    }
    OrtHostCall(const OrtHostCall&) = delete;
    OrtHostCall& operator=(const OrtHostCall&) = delete;
    // What somebody kept of the tensors must not refer to the engine's memory any more.
    ~OrtHostCall() override {
        for (const auto* list : {&inputs_, &outputs_}) {
            for (const auto& value : *list) {
                if (value.body() != nullptr && value.body().use_count() > 1) {
                    static_cast<OrtBody&>(*value.body()).own();
                }
            }
        }
    }

    std::size_t input_count() const override { return input_count_; }
    std::size_t output_count() const override { return output_count_; }

    const Value& input(std::size_t slot) override {
        if (inputs_.empty()) {
            inputs_.resize(input_count_);
        }
        auto& value = inputs_.at(slot);
        if (value.body() == nullptr) {
            const OrtValue* given = nullptr;
            check(api()(kernel_input, context_, slot, &given));
            if (given != nullptr) {
                value = Value(std::make_shared<OrtBody>(environment_, Owned::lent(given), nullptr));
            }
        }
        return value;
    }

    Value output(std::size_t slot, DType dtype, const Shape& shape) override {
        outputs_.resize(output_count_);
        if (outputs_.at(slot).body() != nullptr) {
            return outputs_[slot];
        }
        OrtValue* made = nullptr;
        check(api()(kernel_output, context_, slot, shape.data(), shape.size(), &made));
        if (made == nullptr) {
            return {};  // nobody reads it
        }
        const auto body = std::make_shared<OrtBody>(environment_, Owned::lent(made), nullptr);
        if (body->dtype() != dtype) {
            throw Error(Fault::usage, fmt::format("output {} must be of type {}, not {}", slot,
                                                  name(body->dtype()), name(dtype)));
        }
        body->let_write();
        outputs_[slot] = Value(body);
        return outputs_[slot];
    }

    void give(std::size_t slot, const Value& value) override {
        auto out = output(slot, value.dtype(), value.shape());
        if (!out.is_tensor()) {
            return;
        }
        const auto* to = static_cast<const OrtBody&>(*out.body()).get();
        if (value.dtype() == DType::string) {
            if (own_value(*environment_, value) != to) {
                fill_strings(*environment_, value.string_values(), const_cast<OrtValue*>(to));
            }
            return;
        }
        const auto from = value.bytes();
        if (from.empty()) {
            return;  // the engine gives no memory for it
        }
        const auto room = out.mutable_bytes();
        if (from.data() != room.data()) {
            std::memcpy(room.data(), from.data(), std::min(from.size(), room.size()));
        }
    }

    void together(std::size_t parts, const std::function<void(std::size_t)>& work) override {
        const auto call = [](void* data, std::size_t part) {
            (*static_cast<const std::function<void(std::size_t)>*>(data))(part);
        };
        check(api()(kernel_together, context_, call, parts, 0,
                    const_cast<void*>(static_cast<const void*>(&work))));
    }

private:
    const Api& api() const { return environment_->api(); }
    void check(Status* status) const { environment_->library().check(status, "call back"); }

    const std::shared_ptr<Environment>& environment_;
    KernelContext* context_;
    std::size_t input_count_ = 0;
    std::size_t output_count_ = 0;
    std::vector<Value> inputs_;
    std::vector<Value> outputs_;
};

// --- What the engine asks of a custom op --------------------------------------------------------

const char* op_name(const CustomOp* op) {
    return definition(op).name;
}
const char* op_provider(const CustomOp* /*op*/) {
    return nullptr;  // the CPU's
}
ElementType any_type(const CustomOp* /*op*/, std::size_t /*index*/) {
    return 0;
}
std::size_t one_list(const CustomOp* /*op*/) {
    return 1;
}
int variadic(const CustomOp* /*op*/, std::size_t /*index*/) {
    return 2;
}
int host_memory(const CustomOp* /*op*/, std::size_t /*index*/) {
    return -2;  // input on the CPU, wherever the op runs
}
int none_needed(const CustomOp* /*op*/) {
    return 0;
}
int of_several_types(const CustomOp* /*op*/) {
    return 0;
}
int first_version(const CustomOp* /*op*/) {
    return 1;
}
int last_version(const CustomOp* /*op*/) {
    return std::numeric_limits<int>::max();
}

Status* make_kernel(const CustomOp* op, const void* /*api*/, const KernelInfo* info,
                    void** kernel) {
    auto made = std::make_unique<Kernel>();
    made->owner = definition(op).owner;
    if (auto* status =
            made->owner->environment().api()(kernel_integer, info, "site", &made->site)) {
        return status;
    }
    *kernel = made.release();
    return nullptr;
}
void destroy_kernel(void* kernel) {
    delete static_cast<Kernel*>(kernel);
}
Status* compute(void* kernel, KernelContext* context) {
    const auto& k = *static_cast<Kernel*>(kernel);
    return k.owner->call(k.site, context);
}

// Every dimension has a number or a name. A shape of no dimensions is either a scalar's or unknown:
// the engine does not tell them apart, not even where it says that it does.
bool is_known(const Api& api, const TensorInfo* info) {
    std::size_t rank = 0;
    if (auto* status = api(get_rank, info, &rank)) {
        api(release_status, status);
        return false;
    }
    if (rank == 0) {
        return false;
    }
    std::vector<std::int64_t> dims(rank);
    std::vector<const char*> names(rank, nullptr);
    for (auto* status : {api(get_dimensions, info, dims.data(), rank),
                         api(get_dimension_names, info, names.data(), rank)}) {
        if (status != nullptr) {
            api(release_status, status);
            return false;
        }
    }
    for (std::size_t i = 0; i < rank; ++i) {
        if (dims[i] < 0 && (names[i] == nullptr || *names[i] == '\0')) {
            return false;
        }
    }
    return true;
}

// Output i of a tap has the shape of input i, as far as that is known: then the engine may let both
// share their memory. The attribute `passes` says how many there are.
Status* infer_tap(const CustomOp* op, ShapeInferContext* context) {
    const auto& api = definition(op).owner->environment().api();
    const OpAttribute* attribute = nullptr;
    if (auto* status = api(infer_attribute, context, "passes", &attribute)) {
        return status;
    }
    constexpr int integer = 1;
    std::int64_t passes = 0;
    std::size_t size = 0;
    if (auto* status = api(read_attribute, attribute, integer, &passes, sizeof(passes), &size)) {
        return status;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(passes); ++i) {
        TensorInfo* info = nullptr;  // stays the context's
        if (auto* status = api(infer_input, context, i, &info)) {
            return status;
        }
        if (is_known(api, info)) {
            if (auto* status = api(infer_output, context, i, info)) {
                return status;
            }
        }
    }
    return nullptr;
}

std::size_t in_place(int** inputs, int** outputs) {
    for (auto** list : {inputs, outputs}) {
        *list = new int[most_in_place];
        for (int i = 0; i < most_in_place; ++i) {
            (*list)[i] = i;
        }
    }
    return most_in_place;
}
void release_in_place(int* inputs, int* outputs) {
    delete[] inputs;
    delete[] outputs;
}

std::unique_ptr<Definition> define(HostOps& owner, const char* name) {
    auto made = std::make_unique<Definition>();
    made->version = base_version;
    made->get_name = op_name;
    made->get_provider = op_provider;
    made->get_input_type = any_type;
    made->get_input_type_count = one_list;
    made->get_output_type = any_type;
    made->get_output_type_count = one_list;
    made->kernel_destroy = destroy_kernel;
    made->get_input_characteristic = variadic;
    made->get_output_characteristic = variadic;
    made->get_input_memory_type = host_memory;
    made->get_variadic_input_min_arity = none_needed;
    made->get_variadic_input_homogeneity = of_several_types;
    made->get_variadic_output_min_arity = none_needed;
    made->get_variadic_output_homogeneity = of_several_types;
    made->create_kernel_v2 = make_kernel;
    made->kernel_compute_v2 = compute;
    made->get_start_version = first_version;
    made->get_end_version = last_version;
    made->owner = &owner;
    made->name = name;
    return made;
}

bool holds_host_ops(const Graph& graph) {
    return std::any_of(graph.ops().begin(), graph.ops().end(), [&](OpId id) {
        const auto& op = graph.op(id);
        if (op.domain == host_domain) {
            return true;
        }
        const auto bodies = op.subgraphs();
        return std::any_of(bodies.begin(), bodies.end(),
                           [](const auto& body) { return holds_host_ops(*body); });
    });
}

}  // namespace

HostOps::HostOps(std::shared_ptr<Environment> environment, HostFunction function)
    : environment_(std::move(environment)),
      function_(std::move(function)),
      look_(define(*this, "Look")),
      tap_(define(*this, "Tap")),
      call_(define(*this, "Call")) {
    // Who only looks may share memory with other readers; who writes may not.
    look_->infer_output_shape = infer_tap;
    look_->get_alias_map = in_place;
    look_->release_alias_map = release_in_place;
    tap_->infer_output_shape = infer_tap;
    tap_->get_may_inplace = in_place;
    tap_->release_may_inplace = release_in_place;
    const auto& library = environment_->library();
    constexpr const char* what = "take ops of the host";
    library.check(library.api()(create_domain, host_domain, &domain_), what);
    library.check(library.api()(domain_add, domain_, look_.get()), what);
    library.check(library.api()(domain_add, domain_, tap_.get()), what);
    library.check(library.api()(domain_add, domain_, call_.get()), what);
}

HostOps::~HostOps() {
    environment_->api()(release_domain, domain_);
}

void HostOps::add_to(SessionOptions* options) const {
    const auto& library = environment_->library();
    library.check(library.api()(add_domain, options, domain_), "take ops of the host");
}

Status* HostOps::call(std::int64_t site, KernelContext* context) noexcept {
    try {
        OrtHostCall made(environment_, context);
        function_(site, made);
        return nullptr;
    } catch (...) {
        failure_ = std::current_exception();
    }
    return environment_->api()(create_status, failed, "a callback failed");
}

void HostOps::rethrow(Status* status) {
    if (failure_ == nullptr) {
        return;
    }
    if (status != nullptr) {
        environment_->api()(release_status, status);
    }
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool holds_host_ops(const Model& model) {
    return holds_host_ops(model.graph);
}

}  // namespace trocar::ort
