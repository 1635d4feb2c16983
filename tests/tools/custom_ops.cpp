// A library of custom ops as users of ONNX Runtime have them, for the tests: com.example:Twist,
// which negates its input and gives a second output of one number.
#include <cstddef>

#include "engines/onnxruntime/ort_api.h"

namespace {

using namespace trocar::ort;

Api api;

const char* op_name(const CustomOp*) {
    return "Twist";
}
const char* provider(const CustomOp*) {
    return nullptr;
}
ElementType f32(const CustomOp*, std::size_t) {
    return 1;
}
std::size_t one(const CustomOp*) {
    return 1;
}
std::size_t two(const CustomOp*) {
    return 2;
}
int required(const CustomOp*, std::size_t) {
    return 0;
}
Status* make(const CustomOp*, const void*, const KernelInfo*, void** kernel) {
    static int nothing = 0;
    *kernel = &nothing;
    return nullptr;
}
void destroy(void*) {}

Status* compute(void*, KernelContext* context) {
    const OrtValue* in = nullptr;
    api(kernel_input, static_cast<const KernelContext*>(context), std::size_t{0}, &in);
    TensorInfo* info = nullptr;
    api(get_tensor_info, in, &info);
    std::int64_t shape[2]{};
    api(get_dimensions, static_cast<const TensorInfo*>(info), static_cast<std::int64_t*>(shape),
        std::size_t{2});
    api(release_tensor_info, info);
    OrtValue* out = nullptr;
    OrtValue* angle = nullptr;
    const std::int64_t single[1]{1};
    api(kernel_output, context, std::size_t{0}, static_cast<const std::int64_t*>(shape),
        std::size_t{2}, &out);
    api(kernel_output, context, std::size_t{1}, static_cast<const std::int64_t*>(single),
        std::size_t{1}, &angle);
    void* from = nullptr;
    void* to = nullptr;
    api(get_tensor_data, const_cast<OrtValue*>(in), &from);
    api(get_tensor_data, out, &to);
    for (std::int64_t i = 0; i < shape[0] * shape[1]; ++i) {
        static_cast<float*>(to)[i] = -static_cast<const float*>(from)[i];
    }
    if (angle != nullptr) {
        void* number = nullptr;
        api(get_tensor_data, angle, &number);
        *static_cast<float*>(number) = 90;
    }
    return nullptr;
}

CustomOp define() {
    CustomOp op;
    op.version = base_version;
    op.get_name = op_name;
    op.get_provider = provider;
    op.get_input_type = f32;
    op.get_input_type_count = one;
    op.get_output_type = f32;
    op.get_output_type_count = two;
    op.kernel_destroy = destroy;
    op.get_input_characteristic = required;
    op.get_output_characteristic = required;
    op.get_input_memory_type = required;
    op.create_kernel_v2 = make;
    op.kernel_compute_v2 = compute;
    op.get_start_version = [](const CustomOp*) { return 1; };
    op.get_end_version = [](const CustomOp*) { return 100; };
    return op;
}

}  // namespace

// The name is ONNX Runtime's.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) trocar::ort::Status* RegisterCustomOps(
    trocar::ort::SessionOptions* options, const trocar::ort::ApiBase* base) {
    static const CustomOp twist = define();
    api = Api(base->table(base_version), base_version);
    CustomOpDomain* domain = nullptr;
    if (auto* status = api(create_domain, "com.example", &domain)) {
        return status;
    }
    if (auto* status = api(domain_add, domain, &twist)) {
        return status;
    }
    return api(add_domain, options, domain);
}
