#pragma once

#include <cstddef>
#include <cstdint>

// The part of ONNX Runtime's C API that Trocar calls. The API is a table of function pointers whose
// order never changes and only grows; a function is its place in that table and its signature. The
// objects behind the pointers are opaque. Numbers are facts of the ABI, checked in
// ort_api_test.cpp.
namespace trocar::ort {

struct Status;
struct Env;
struct Session;
struct SessionOptions;
struct RunOptions;
struct ThreadingOptions;
struct OrtValue;
struct MemoryInfo;
struct Allocator;
struct TensorInfo;
struct TypeInfo;
struct SequenceInfo;
struct CudaOptions;
struct TensorRtOptions;
struct KeyValuePairs;
struct CustomOpDomain;
struct KernelContext;
struct KernelInfo;
struct ShapeInferContext;
struct OpAttribute;

enum class Severity : int { verbose, info, warning, error, fatal };
enum class ValueType : int { unknown, tensor, sequence, map, opaque, sparse_tensor, optional };
enum class GraphOptimization : int { none = 0, all = 99 };
enum class AllocatorKind : int { device = 0, arena = 1 };
enum class MemoryKind : int { normal = 0 };
using ElementType = int;  // see element_type() in values.h: not the numbers of the ONNX file format

using LogFunction = void(void* param, Severity severity, const char* category, const char* id,
                         const char* location, const char* message);

// A custom op as the engine asks after it: a struct of functions that only grows, like the table.
// `version` is that of the table it was written for. nullptr where the engine's default serves.
struct CustomOp {
    std::uint32_t version = 0;
    void* (*create_kernel)(const CustomOp*, const void* api, const KernelInfo*) = nullptr;
    const char* (*get_name)(const CustomOp*) = nullptr;
    const char* (*get_provider)(const CustomOp*) = nullptr;
    ElementType (*get_input_type)(const CustomOp*, std::size_t index) = nullptr;
    std::size_t (*get_input_type_count)(const CustomOp*) = nullptr;
    ElementType (*get_output_type)(const CustomOp*, std::size_t index) = nullptr;
    std::size_t (*get_output_type_count)(const CustomOp*) = nullptr;
    void (*kernel_compute)(void* kernel, KernelContext*) = nullptr;
    void (*kernel_destroy)(void* kernel) = nullptr;
    int (*get_input_characteristic)(const CustomOp*, std::size_t index) = nullptr;
    int (*get_output_characteristic)(const CustomOp*, std::size_t index) = nullptr;
    int (*get_input_memory_type)(const CustomOp*, std::size_t index) = nullptr;
    int (*get_variadic_input_min_arity)(const CustomOp*) = nullptr;
    int (*get_variadic_input_homogeneity)(const CustomOp*) = nullptr;
    int (*get_variadic_output_min_arity)(const CustomOp*) = nullptr;
    int (*get_variadic_output_homogeneity)(const CustomOp*) = nullptr;
    Status* (*create_kernel_v2)(const CustomOp*, const void* api, const KernelInfo*,
                                void** kernel) = nullptr;
    Status* (*kernel_compute_v2)(void* kernel, KernelContext*) = nullptr;
    Status* (*infer_output_shape)(const CustomOp*, ShapeInferContext*) = nullptr;
    int (*get_start_version)(const CustomOp*) = nullptr;
    int (*get_end_version)(const CustomOp*) = nullptr;
    std::size_t (*get_may_inplace)(int** inputs, int** outputs) = nullptr;
    void (*release_may_inplace)(int* inputs, int* outputs) = nullptr;
    std::size_t (*get_alias_map)(int** inputs, int** outputs) = nullptr;
    void (*release_alias_map)(int* inputs, int* outputs) = nullptr;
};

struct ApiBase {
    const void* const* (*table)(std::uint32_t version);  // nullptr, and a line on stderr: too new
    const char* (*version)();
};

// The oldest version of the table that has all functions below but those marked with a later one.
// It is the API of ONNX Runtime 1.19, the oldest release that Trocar takes.
inline constexpr std::uint32_t base_version = 19;

template <class Signature>
struct Function {
    std::size_t slot;
    const char* name;                    // in the official header
    std::uint32_t since = base_version;  // version of the table that first has it
};

// The function table of one loaded library.
class Api {
public:
    Api() = default;
    Api(const void* const* table, std::uint32_t version) : table_(table), version_(version) {}

    std::uint32_t version() const { return version_; }
    template <class Signature>
    bool has(const Function<Signature>& function) const {
        return version_ >= function.since;
    }
    // Calls a function. One that the version does not have must not be called.
    template <class Result, class... Parameters, class... Arguments>
    Result operator()(const Function<Result(Parameters...)>& function,
                      Arguments... arguments) const {
        using Pointer = Result (*)(Parameters...);
        return reinterpret_cast<Pointer>(const_cast<void*>(table_[function.slot]))(arguments...);
    }

private:
    const void* const* table_ = nullptr;
    std::uint32_t version_ = 0;
};

// clang-format off
using Names = const char* const*;

// Statuses: nullptr is success; any other must be released.
inline constexpr Function<const char*(const Status*)> get_error_message{2, "GetErrorMessage"};
inline constexpr Function<void(Status*)> release_status{93, "ReleaseStatus"};
inline constexpr Function<Status*(int code, const char* message)> create_status{0, "CreateStatus"};

// Environment
inline constexpr Function<Status*(LogFunction*, void* param, Severity, const char* id, Env**)>
    create_env{4, "CreateEnvWithCustomLogger"};
inline constexpr Function<Status*(LogFunction*, void* param, Severity, const char* id, const ThreadingOptions*, Env**)>
    create_env_with_pools{151, "CreateEnvWithCustomLoggerAndGlobalThreadPools"};
// Sessions with the config entry session.use_env_allocators then take memory from it.
inline constexpr Function<Status*(Env*, const MemoryInfo*, const void* arena)> register_allocator{144, "CreateAndRegisterAllocator"};
inline constexpr Function<void(Env*)> release_env{92, "ReleaseEnv"};
inline constexpr Function<Status*(const Env*)> disable_telemetry{6, "DisableTelemetryEvents"};
inline constexpr Function<Status*(ThreadingOptions**)> create_threading_options{121, "CreateThreadingOptions"};
inline constexpr Function<void(ThreadingOptions*)> release_threading_options{122, "ReleaseThreadingOptions"};
inline constexpr Function<Status*(ThreadingOptions*, int)> set_global_intra_op_threads{147, "SetGlobalIntraOpNumThreads"};
inline constexpr Function<Status*(ThreadingOptions*, int)> set_global_inter_op_threads{148, "SetGlobalInterOpNumThreads"};
inline constexpr Function<Status*(char*** names, int* count)> get_available_providers{125, "GetAvailableProviders"};
inline constexpr Function<Status*(char** names, int count)> release_available_providers{126, "ReleaseAvailableProviders"};

// Session options
inline constexpr Function<Status*(SessionOptions**)> create_session_options{10, "CreateSessionOptions"};
inline constexpr Function<void(SessionOptions*)> release_session_options{100, "ReleaseSessionOptions"};
inline constexpr Function<Status*(SessionOptions*, int)> set_log_severity{22, "SetSessionLogSeverityLevel"};
inline constexpr Function<Status*(SessionOptions*, GraphOptimization)> set_graph_optimization{23, "SetSessionGraphOptimizationLevel"};
inline constexpr Function<Status*(SessionOptions*, int)> set_intra_op_threads{24, "SetIntraOpNumThreads"};
inline constexpr Function<Status*(SessionOptions*)> disable_memory_pattern{17, "DisableMemPattern"};
inline constexpr Function<Status*(SessionOptions*)> disable_arena{19, "DisableCpuMemArena"};
inline constexpr Function<Status*(SessionOptions*)> disable_session_threads{120, "DisablePerSessionThreads"};
inline constexpr Function<Status*(SessionOptions*, const char* key, const char* value)> add_config_entry{130, "AddSessionConfigEntry"};
// Written when the session is made: the graph as the engine optimised it.
inline constexpr Function<Status*(SessionOptions*, const char* path)> set_optimized_model_path{11, "SetOptimizedModelFilePath"};
inline constexpr Function<Status*(SessionOptions*, const char* prefix)> enable_profiling{14, "EnableProfiling"};
inline constexpr Function<Status*(SessionOptions*, LogFunction*, void* param)> set_log_function{266, "SetUserLoggingFunction"};
// Borrowed for the life of the session; takes the place of the initializer's bytes when the session
// is ready, after the graph was optimised.
inline constexpr Function<Status*(SessionOptions*, const char* name, const OrtValue*)> add_initializer{150, "AddInitializer"};
// Copied; takes the place of an initializer with external data before the graph is optimised.
inline constexpr Function<Status*(SessionOptions*, Names, const OrtValue* const*, std::size_t count)>
    add_external_initializers{210, "AddExternalInitializers"};

// Execution providers
inline constexpr Function<Status*(SessionOptions*, const char* provider, Names keys, Names values, std::size_t count)>
    append_provider{216, "SessionOptionsAppendExecutionProvider"};
inline constexpr Function<Status*(CudaOptions**)> create_cuda_options{205, "CreateCUDAProviderOptions"};
inline constexpr Function<Status*(CudaOptions*, Names keys, Names values, std::size_t count)> update_cuda_options{206, "UpdateCUDAProviderOptions"};
inline constexpr Function<void(CudaOptions*)> release_cuda_options{208, "ReleaseCUDAProviderOptions"};
inline constexpr Function<Status*(SessionOptions*, const CudaOptions*)> append_cuda{204, "SessionOptionsAppendExecutionProvider_CUDA_V2"};
inline constexpr Function<Status*(TensorRtOptions**)> create_tensorrt_options{171, "CreateTensorRTProviderOptions"};
inline constexpr Function<Status*(TensorRtOptions*, Names keys, Names values, std::size_t count)> update_tensorrt_options{172, "UpdateTensorRTProviderOptions"};
inline constexpr Function<void(TensorRtOptions*)> release_tensorrt_options{174, "ReleaseTensorRTProviderOptions"};
inline constexpr Function<Status*(SessionOptions*, const TensorRtOptions*)> append_tensorrt{170, "SessionOptionsAppendExecutionProvider_TensorRT_V2"};

// Sessions
inline constexpr Function<Status*(const Env*, const char* path, const SessionOptions*, Session**)> create_session{7, "CreateSession"};
inline constexpr Function<Status*(const Env*, const void* bytes, std::size_t size, const SessionOptions*, Session**)>
    create_session_from_array{8, "CreateSessionFromArray"};
inline constexpr Function<void(Session*)> release_session{95, "ReleaseSession"};
inline constexpr Function<Status*(Session*, const RunOptions*, Names input_names, const OrtValue* const* inputs, std::size_t input_count,
                                  Names output_names, std::size_t output_count, OrtValue** outputs)> run_session{9, "Run"};
// Ends the profiling of a session and gives the path of the file with what was measured, for the caller to free.
inline constexpr Function<Status*(Session*, Allocator*, char** path)> end_profiling{110, "SessionEndProfiling"};

// Values
inline constexpr Function<Status*(const MemoryInfo*, void* bytes, std::size_t size, const std::int64_t* shape, std::size_t rank, ElementType, OrtValue**)>
    create_tensor_view{49, "CreateTensorWithDataAsOrtValue"};
inline constexpr Function<Status*(Allocator*, const std::int64_t* shape, std::size_t rank, ElementType, OrtValue**)> create_tensor{48, "CreateTensorAsOrtValue"};
inline constexpr Function<Status*(const OrtValue* const* items, std::size_t count, ValueType, OrtValue**)> create_value{82, "CreateValue"};
inline constexpr Function<void(OrtValue*)> release_value{96, "ReleaseValue"};
inline constexpr Function<Status*(OrtValue*, std::size_t index, std::size_t size, char** text)>
    resize_string{252, "GetResizedStringTensorElementBuffer"};
inline constexpr Function<Status*(const OrtValue*, std::size_t*)> get_string_bytes{53, "GetStringTensorDataLength"};
inline constexpr Function<Status*(const OrtValue*, void* text, std::size_t size, std::size_t* offsets, std::size_t count)>
    get_strings{54, "GetStringTensorContent"};
inline constexpr Function<Status*(const OrtValue*, ValueType*)> get_value_type{67, "GetValueType"};
inline constexpr Function<Status*(const OrtValue*, int*)> is_tensor{50, "IsTensor"};  // cheaper than the type
inline constexpr Function<Status*(const OrtValue*, int*)> has_value{192, "HasValue"};
inline constexpr Function<Status*(OrtValue*, void**)> get_tensor_data{51, "GetTensorMutableData"};
inline constexpr Function<Status*(const OrtValue*, TensorInfo**)> get_tensor_info{65, "GetTensorTypeAndShape"};
inline constexpr Function<Status*(const TensorInfo*, ElementType*)> get_element_type{60, "GetTensorElementType"};
inline constexpr Function<Status*(const TensorInfo*, std::size_t*)> get_rank{61, "GetDimensionsCount"};
inline constexpr Function<Status*(const TensorInfo*, std::int64_t*, std::size_t rank)> get_dimensions{62, "GetDimensions"};
inline constexpr Function<Status*(const TensorInfo*, const char** names, std::size_t rank)> get_dimension_names{63, "GetSymbolicDimensions"};
inline constexpr Function<Status*(const OrtValue*, TypeInfo**)> get_type_info{66, "GetTypeInfo"};
inline constexpr Function<void(TypeInfo*)> release_type_info{98, "ReleaseTypeInfo"};
inline constexpr Function<Status*(const TypeInfo*, const SequenceInfo**)> as_sequence_info{104, "CastTypeInfoToSequenceTypeInfo"};
inline constexpr Function<Status*(const SequenceInfo*, TypeInfo**)> get_item_type{107, "GetSequenceElementType"};
inline constexpr Function<Status*(const TypeInfo*, const TensorInfo**)> as_tensor_info{55, "CastTypeInfoToTensorInfo"};
inline constexpr Function<void(TensorInfo*)> release_tensor_info{99, "ReleaseTensorTypeAndShapeInfo"};
inline constexpr Function<Status*(const OrtValue*, const MemoryInfo**)> get_tensor_memory{194, "GetTensorMemoryInfo"};
inline constexpr Function<Status*(const OrtValue*, std::size_t*)> get_item_count{81, "GetValueCount"};
inline constexpr Function<Status*(const OrtValue*, int index, Allocator*, OrtValue**)> get_item{80, "GetValue"};

// Custom ops
inline constexpr Function<Status*(const char* name, CustomOpDomain**)> create_domain{26, "CreateCustomOpDomain"};
inline constexpr Function<Status*(CustomOpDomain*, const CustomOp*)> domain_add{27, "CustomOpDomain_Add"};
inline constexpr Function<Status*(SessionOptions*, CustomOpDomain*)> add_domain{28, "AddCustomOpDomain"};
inline constexpr Function<void(CustomOpDomain*)> release_domain{101, "ReleaseCustomOpDomain"};
inline constexpr Function<Status*(SessionOptions*, const char* path)> register_library{228, "RegisterCustomOpsLibrary_V2"};
inline constexpr Function<Status*(const KernelInfo*, const char* name, std::int64_t*)> kernel_integer{86, "KernelInfoGetAttribute_int64"};
inline constexpr Function<Status*(const KernelContext*, std::size_t*)> kernel_input_count{88, "KernelContext_GetInputCount"};
inline constexpr Function<Status*(const KernelContext*, std::size_t*)> kernel_output_count{89, "KernelContext_GetOutputCount"};
inline constexpr Function<Status*(const KernelContext*, std::size_t, const OrtValue**)> kernel_input{90, "KernelContext_GetInput"};
inline constexpr Function<Status*(KernelContext*, std::size_t, const std::int64_t* shape, std::size_t rank, OrtValue**)> kernel_output{91, "KernelContext_GetOutput"};
inline constexpr Function<Status*(const ShapeInferContext*, std::size_t, TensorInfo**)> infer_input{268, "ShapeInferContext_GetInputTypeShape"};
inline constexpr Function<Status*(const ShapeInferContext*, const char*, const OpAttribute**)> infer_attribute{269, "ShapeInferContext_GetAttribute"};
inline constexpr Function<Status*(const ShapeInferContext*, std::size_t, const TensorInfo*)> infer_output{270, "ShapeInferContext_SetOutputTypeShape"};
inline constexpr Function<Status*(const KernelContext*, void (*work)(void*, std::size_t), std::size_t total, std::size_t batches, void* data)>
    kernel_together{274, "KernelContext_ParallelFor"};
inline constexpr Function<Status*(const OpAttribute*, int type, void* data, std::size_t size, std::size_t* given)> read_attribute{272, "ReadOpAttr"};

// Memory
inline constexpr Function<Status*(AllocatorKind, MemoryKind, MemoryInfo**)> create_cpu_memory_info{69, "CreateCpuMemoryInfo"};
inline constexpr Function<void(MemoryInfo*)> release_memory_info{94, "ReleaseMemoryInfo"};
inline constexpr Function<Status*(const MemoryInfo*, const char**)> get_memory_name{71, "MemoryInfoGetName"};
inline constexpr Function<Status*(const MemoryInfo*, int*)> get_memory_id{72, "MemoryInfoGetId"};
inline constexpr Function<Status*(Allocator**)> get_default_allocator{78, "GetAllocatorWithDefaultOptions"};
inline constexpr Function<Status*(Allocator*, void*)> allocator_free{76, "AllocatorFree"};
inline constexpr Function<Status*(const Session*, const MemoryInfo*, Allocator**)> create_allocator{131, "CreateAllocator"};
inline constexpr Function<void(Allocator*)> release_allocator{132, "ReleaseAllocator"};
inline constexpr Function<Status*(const Allocator*, KeyValuePairs**)> get_allocator_stats{319, "AllocatorGetStats", 23};
inline constexpr Function<const char*(const KeyValuePairs*, const char* key)> get_pair{297, "GetKeyValue", 22};
inline constexpr Function<void(KeyValuePairs*)> release_pairs{300, "ReleaseKeyValuePairs", 22};
// clang-format on

}  // namespace trocar::ort
