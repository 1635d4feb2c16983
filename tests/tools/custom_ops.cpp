// A library of custom ops as users of ONNX Runtime have them, for the tests: com.example:Twist,
// which negates its input and gives a second output of one number, and com.example:Fragile, which
// gives its input, but crashes on numbers above 1e30, and never ends on others above 1e10.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstddef>
#include <initializer_list>

#include "engines/onnxruntime/ort_api.h"

namespace {

using namespace trocar::ort;

Api api;

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

// The first input, a matrix, and an output like it.
struct Matrices {
    std::int64_t count = 0;
    const float* from = nullptr;
    float* to = nullptr;
};

Matrices matrices(KernelContext* context) {
    const OrtValue* in = nullptr;
    api(kernel_input, static_cast<const KernelContext*>(context), std::size_t{0}, &in);
    TensorInfo* info = nullptr;
    api(get_tensor_info, in, &info);
    std::int64_t shape[2]{};
    api(get_dimensions, static_cast<const TensorInfo*>(info), static_cast<std::int64_t*>(shape),
        std::size_t{2});
    api(release_tensor_info, info);
    OrtValue* out = nullptr;
    api(kernel_output, context, std::size_t{0}, static_cast<const std::int64_t*>(shape),
        std::size_t{2}, &out);
    void* from = nullptr;
    void* to = nullptr;
    api(get_tensor_data, const_cast<OrtValue*>(in), &from);
    api(get_tensor_data, out, &to);
    return {shape[0] * shape[1], static_cast<const float*>(from), static_cast<float*>(to)};
}

Status* fragile(void*, KernelContext* context) {
    const auto m = matrices(context);
    for (std::int64_t i = 0; i < m.count; ++i) {
        if (std::abs(m.from[i]) > 1e30F) {
            std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would report it instead
            std::raise(SIGSEGV);
        }
        while (std::abs(m.from[i]) > 1e10F) {
            ::usleep(1000);
        }
        m.to[i] = m.from[i];
    }
    return nullptr;
}

Status* twist(void*, KernelContext* context) {
    const auto m = matrices(context);
    for (std::int64_t i = 0; i < m.count; ++i) {
        m.to[i] = -m.from[i];
    }
    OrtValue* angle = nullptr;
    const std::int64_t single[1]{1};
    api(kernel_output, context, std::size_t{1}, static_cast<const std::int64_t*>(single),
        std::size_t{1}, &angle);
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
    op.get_provider = provider;
    op.get_input_type = f32;
    op.get_input_type_count = one;
    op.get_output_type = f32;
    op.kernel_destroy = destroy;
    op.get_input_characteristic = required;
    op.get_output_characteristic = required;
    op.get_input_memory_type = required;
    op.create_kernel_v2 = make;
    op.get_start_version = [](const CustomOp*) { return 1; };
    op.get_end_version = [](const CustomOp*) { return 100; };
    return op;
}

}  // namespace

// The name is ONNX Runtime's.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) trocar::ort::Status* RegisterCustomOps(
    trocar::ort::SessionOptions* options, const trocar::ort::ApiBase* base) {
    static const CustomOp first = [] {
        auto op = define();
        op.get_name = [](const CustomOp*) { return "Twist"; };
        op.get_output_type_count = two;
        op.kernel_compute_v2 = twist;
        return op;
    }();
    static const CustomOp second = [] {
        auto op = define();
        op.get_name = [](const CustomOp*) { return "Fragile"; };
        op.get_output_type_count = one;
        op.kernel_compute_v2 = fragile;
        return op;
    }();
    api = Api(base->table(base_version), base_version);
    CustomOpDomain* domain = nullptr;
    if (auto* status = api(create_domain, "com.example", &domain)) {
        return status;
    }
    for (const auto* op : {&first, &second}) {
        if (auto* status = api(domain_add, domain, op)) {
            return status;
        }
    }
    return api(add_domain, options, domain);
}
