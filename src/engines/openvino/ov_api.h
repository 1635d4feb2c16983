#pragma once

#include <cstddef>
#include <cstdint>

#include "util/c_library.h"

// The functions of OpenVINO's C API that Trocar calls, by the names that libopenvino_c exports.
// Facts of its ABI, restated: nothing of OpenVINO is needed to build. The signatures are those of
// 2025.4 and newer; ov_api_test.cpp compares them with the official headers where these are found.
namespace trocar::ov {

using c_library::Function;
using c_library::Owned;

// Objects of the engine, known by pointer only.
struct Core;
struct Source;  // a model as read
struct Compiled;
struct Request;
struct TensorHandle;
struct Port;

enum class Status : int { ok = 0, invalid_parameter = -14 };

enum class ElementType : int {
    dynamic = 0,
    boolean = 1,
    bf16 = 2,
    f16 = 3,
    f32 = 4,
    f64 = 5,
    i4 = 6,
    i8 = 7,
    i16 = 8,
    i32 = 9,
    i64 = 10,
    u2 = 12,
    u4 = 14,
    u8 = 16,
    u16 = 17,
    u32 = 18,
    u64 = 19,
    f8e4m3 = 21,
    f8e5m2 = 22,
    string = 23,
    f4e2m1 = 24,
    f8e8m0 = 25,
};

struct Dimensions {
    std::int64_t rank = 0;
    std::int64_t* dims = nullptr;
};
struct Version {
    const char* build = nullptr;
    const char* description = nullptr;
};
struct Devices {
    char** names = nullptr;
    std::size_t size = 0;
};
enum class KernelState : int { not_run, optimized_out, executed };
struct KernelInfo {
    KernelState state = KernelState::not_run;
    std::int64_t real_microseconds = 0;
    std::int64_t cpu_microseconds = 0;
    const char* name = nullptr;
    const char* exec_type = nullptr;
    const char* type = nullptr;
};
struct KernelInfos {
    KernelInfo* infos = nullptr;
    std::size_t size = 0;
};
using LogFunction = void (*)(const char*);

struct Api {
    // Texts that the engine gives are released with `release_text`.
    Function<const char*()> last_message{"ov_get_last_err_msg"};
    Function<const char*(Status)> status_text{"ov_get_error_info"};  // not released
    Function<void(const char*)> release_text{"ov_free"};
    Function<void(LogFunction)> set_log{"ov_util_set_log_callback"};

    Function<Status(Version*)> library_version{"ov_get_openvino_version"};
    Function<void(Version*)> release_version{"ov_version_free"};

    Function<Status(Core**)> create_core{"ov_core_create"};
    Function<void(Core*)> release_core{"ov_core_free"};
    Function<Status(const Core*, Devices*)> available_devices{"ov_core_get_available_devices"};
    Function<void(Devices*)> release_devices{"ov_available_devices_free"};

    // The model's bytes are those of its file; the engine copies what it keeps.
    Function<Status(const Core*, const char*, std::size_t, const TensorHandle*, Source**)>
        read_model{"ov_core_read_model_from_memory_buffer"};
    Function<void(Source*)> release_model{"ov_model_free"};

    // After the last parameter stand keys and values, all const char*; the fourth is their number.
    Function<Status(const Core*, const Source*, const char*, std::size_t, Compiled**, ...)>
        compile_model{"ov_core_compile_model"};
    Function<void(Compiled*)> release_compiled{"ov_compiled_model_free"};
    Function<Status(const Compiled*, const char*, char**)> compiled_property{
        "ov_compiled_model_get_property"};
    Function<Status(const Compiled*, std::size_t*)> compiled_input_count{
        "ov_compiled_model_inputs_size"};
    Function<Status(const Compiled*, std::size_t*)> compiled_output_count{
        "ov_compiled_model_outputs_size"};
    Function<Status(const Compiled*, std::size_t, Port**)> compiled_input{
        "ov_compiled_model_input_by_index"};
    Function<Status(const Port*, char**)> port_name{"ov_port_get_any_name"};
    Function<Status(const Port*, ElementType*)> port_type{"ov_port_get_element_type"};
    Function<Status(const Port*, Dimensions*)> port_shape{"ov_const_port_get_shape"};
    Function<void(Port*)> release_port{"ov_output_const_port_free"};

    Function<Status(const Compiled*, Request**)> create_request{
        "ov_compiled_model_create_infer_request"};
    Function<void(Request*)> release_request{"ov_infer_request_free"};
    Function<Status(Request*, std::size_t, const TensorHandle*)> set_request_input{
        "ov_infer_request_set_input_tensor_by_index"};
    Function<Status(const Request*, std::size_t, TensorHandle**)> request_output{
        "ov_infer_request_get_output_tensor_by_index"};
    Function<Status(Request*)> infer{"ov_infer_request_infer"};
    Function<Status(const Request*, KernelInfos*)> kernel_infos{
        "ov_infer_request_get_profiling_info"};
    Function<void(KernelInfos*)> release_kernel_infos{"ov_profiling_info_list_free"};

    Function<Status(ElementType, Dimensions, TensorHandle**)> create_tensor{"ov_tensor_create"};
    // The tensor reads and writes the caller's memory.
    Function<Status(ElementType, Dimensions, void*, TensorHandle**)> create_tensor_view{
        "ov_tensor_create_from_host_ptr"};
    Function<void(TensorHandle*)> release_tensor{"ov_tensor_free"};
    Function<Status(const TensorHandle*, ElementType*)> tensor_type{"ov_tensor_get_element_type"};
    Function<Status(const TensorHandle*, Dimensions*)> tensor_shape{"ov_tensor_get_shape"};
    Function<Status(Dimensions*)> release_shape{"ov_shape_free"};
    Function<Status(const TensorHandle*, std::size_t*)> tensor_byte_size{"ov_tensor_get_byte_size"};
    Function<Status(const TensorHandle*, void**)> tensor_data{"ov_tensor_data"};

    // Calls `visit` with every function.
    template <class Visitor>
    void each(Visitor visit) {
        visit(last_message);
        visit(status_text);
        visit(release_text);
        visit(set_log);
        visit(library_version);
        visit(release_version);
        visit(create_core);
        visit(release_core);
        visit(available_devices);
        visit(release_devices);
        visit(read_model);
        visit(release_model);
        visit(compile_model);
        visit(release_compiled);
        visit(compiled_property);
        visit(compiled_input_count);
        visit(compiled_output_count);
        visit(compiled_input);
        visit(port_name);
        visit(port_type);
        visit(port_shape);
        visit(release_port);
        visit(create_request);
        visit(release_request);
        visit(set_request_input);
        visit(request_output);
        visit(infer);
        visit(kernel_infos);
        visit(release_kernel_infos);
        visit(create_tensor);
        visit(create_tensor_view);
        visit(release_tensor);
        visit(tensor_type);
        visit(tensor_shape);
        visit(release_shape);
        visit(tensor_byte_size);
        visit(tensor_data);
    }
};

}  // namespace trocar::ov
