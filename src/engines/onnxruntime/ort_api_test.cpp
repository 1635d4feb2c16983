#include "engines/onnxruntime/ort_api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace trocar::ort {
namespace {

namespace fs = std::filesystem;

struct Entry {
    std::string name;
    std::size_t slot;
    std::uint32_t since;
};

template <class... Signatures>
std::vector<Entry> entries(const Function<Signatures>&... functions) {
    return {Entry{functions.name, functions.slot, functions.since}...};
}

// Every function of ort_api.h.
std::vector<Entry> declared() {
    return entries(
        get_error_message, release_status, create_env, create_env_with_pools, release_env,
        disable_telemetry, create_threading_options, release_threading_options,
        set_global_intra_op_threads, set_global_inter_op_threads, get_available_providers,
        release_available_providers, create_session_options, release_session_options,
        set_log_severity, set_optimized_model_path, enable_profiling, end_profiling, allocator_free,
        set_graph_optimization, set_intra_op_threads, disable_memory_pattern, disable_arena,
        disable_session_threads, add_config_entry, set_log_function, add_initializer,
        add_external_initializers, append_provider, create_cuda_options, update_cuda_options,
        release_cuda_options, append_cuda, create_tensorrt_options, update_tensorrt_options,
        release_tensorrt_options, append_tensorrt, create_session, create_session_from_array,
        release_session, run_session, create_tensor_view, create_tensor, create_value,
        release_value, resize_string, get_string_bytes, get_strings, get_value_type, is_tensor,
        has_value, get_tensor_data, get_tensor_info, get_element_type, get_rank, get_dimensions,
        release_tensor_info, get_tensor_memory, get_item_count, get_item, create_cpu_memory_info,
        release_memory_info, get_memory_name, get_memory_id, get_default_allocator,
        create_allocator, release_allocator, get_allocator_stats, get_pair, release_pairs,
        create_status, create_domain, domain_add, add_domain, release_domain, register_library,
        kernel_integer, kernel_input_count, kernel_output_count, kernel_input, kernel_output,
        get_dimension_names, infer_input, infer_attribute, infer_output, kernel_together,
        read_attribute);
}

// Facts of the ABI: the last slot of each version of the table.
const std::map<std::uint32_t, std::size_t> last_slot{{16, 265}, {17, 275}, {18, 279}, {19, 279},
                                                     {20, 284}, {22, 317}, {23, 389}, {24, 414}};

// Facts of the ABI: where the functions stand.
const std::map<std::string, std::size_t> facts{
    {"CreateStatus", 0},
    {"GetErrorMessage", 2},
    {"CreateEnvWithCustomLogger", 4},
    {"DisableTelemetryEvents", 6},
    {"CreateSession", 7},
    {"CreateSessionFromArray", 8},
    {"SetOptimizedModelFilePath", 11},
    {"EnableProfiling", 14},
    {"AllocatorFree", 76},
    {"SessionEndProfiling", 110},
    {"Run", 9},
    {"CreateSessionOptions", 10},
    {"DisableMemPattern", 17},
    {"DisableCpuMemArena", 19},
    {"SetSessionLogSeverityLevel", 22},
    {"SetSessionGraphOptimizationLevel", 23},
    {"SetIntraOpNumThreads", 24},
    {"CreateCustomOpDomain", 26},
    {"CustomOpDomain_Add", 27},
    {"AddCustomOpDomain", 28},
    {"KernelInfoGetAttribute_int64", 86},
    {"KernelContext_GetInputCount", 88},
    {"KernelContext_GetOutputCount", 89},
    {"KernelContext_GetInput", 90},
    {"KernelContext_GetOutput", 91},
    {"ReleaseCustomOpDomain", 101},
    {"RegisterCustomOpsLibrary_V2", 228},
    {"ShapeInferContext_GetInputTypeShape", 268},
    {"ShapeInferContext_GetAttribute", 269},
    {"ShapeInferContext_SetOutputTypeShape", 270},
    {"ReadOpAttr", 272},
    {"KernelContext_ParallelFor", 274},
    {"CreateTensorAsOrtValue", 48},
    {"CreateTensorWithDataAsOrtValue", 49},
    {"IsTensor", 50},
    {"GetTensorMutableData", 51},
    {"GetStringTensorDataLength", 53},
    {"GetStringTensorContent", 54},
    {"GetTensorElementType", 60},
    {"GetDimensionsCount", 61},
    {"GetDimensions", 62},
    {"GetSymbolicDimensions", 63},
    {"GetTensorTypeAndShape", 65},
    {"GetValueType", 67},
    {"CreateCpuMemoryInfo", 69},
    {"MemoryInfoGetName", 71},
    {"MemoryInfoGetId", 72},
    {"GetAllocatorWithDefaultOptions", 78},
    {"GetValue", 80},
    {"GetValueCount", 81},
    {"CreateValue", 82},
    {"ReleaseEnv", 92},
    {"ReleaseStatus", 93},
    {"ReleaseMemoryInfo", 94},
    {"ReleaseSession", 95},
    {"ReleaseValue", 96},
    {"ReleaseTensorTypeAndShapeInfo", 99},
    {"ReleaseSessionOptions", 100},
    {"DisablePerSessionThreads", 120},
    {"CreateThreadingOptions", 121},
    {"ReleaseThreadingOptions", 122},
    {"GetAvailableProviders", 125},
    {"ReleaseAvailableProviders", 126},
    {"AddSessionConfigEntry", 130},
    {"CreateAllocator", 131},
    {"ReleaseAllocator", 132},
    {"SetGlobalIntraOpNumThreads", 147},
    {"SetGlobalInterOpNumThreads", 148},
    {"AddInitializer", 150},
    {"CreateEnvWithCustomLoggerAndGlobalThreadPools", 151},
    {"SessionOptionsAppendExecutionProvider_TensorRT_V2", 170},
    {"CreateTensorRTProviderOptions", 171},
    {"UpdateTensorRTProviderOptions", 172},
    {"ReleaseTensorRTProviderOptions", 174},
    {"HasValue", 192},
    {"GetTensorMemoryInfo", 194},
    {"SessionOptionsAppendExecutionProvider_CUDA_V2", 204},
    {"CreateCUDAProviderOptions", 205},
    {"UpdateCUDAProviderOptions", 206},
    {"ReleaseCUDAProviderOptions", 208},
    {"AddExternalInitializers", 210},
    {"SessionOptionsAppendExecutionProvider", 216},
    {"GetResizedStringTensorElementBuffer", 252},
    {"SetUserLoggingFunction", 266},
    {"GetKeyValue", 297},
    {"ReleaseKeyValuePairs", 300},
    {"AllocatorGetStats", 319}};

TEST(OrtApi, SlotsAreThoseOfTheAbi) {
    for (const auto& entry : declared()) {
        ASSERT_TRUE(facts.contains(entry.name)) << entry.name;
        EXPECT_EQ(entry.slot, facts.at(entry.name)) << entry.name;
        ASSERT_TRUE(last_slot.contains(entry.since)) << entry.name;
        EXPECT_LE(entry.slot, last_slot.at(entry.since)) << entry.name;
    }
    EXPECT_EQ(declared().size(), facts.size());
}

// The functions of a header's OrtApi in order, by the forms in which it declares them.
std::map<std::string, std::size_t> slots_of(const fs::path& header) {
    std::ifstream in(header);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::string plain;  // without comments
    for (std::size_t i = 0; i < text.size();) {
        if (text.compare(i, 2, "/*") == 0) {
            i = std::min(text.find("*/", i), text.size() - 2) + 2;
        } else if (text.compare(i, 2, "//") == 0) {
            i = std::min(text.find('\n', i), text.size());
        } else {
            plain += text[i++];
        }
    }
    const auto start = plain.find("struct OrtApi {");
    const auto end = plain.find("\n};", start);
    std::map<std::string, std::size_t> slots;
    const std::regex member(
        R"(ORT_API2_STATUS\(\s*(\w+)|ORT_API_T\([^,]*,\s*(\w+)|ORT_CLASS_RELEASE\((\w+)\)|ORT_API_CALL\s*\*\s*(\w+)\))");
    const auto body = start == std::string::npos ? std::string() : plain.substr(start, end - start);
    for (std::sregex_iterator it(body.begin(), body.end(), member), none; it != none; ++it) {
        const auto name = (*it)[3].matched ? "Release" + (*it)[3].str()
                                           : (*it)[1].str() + (*it)[2].str() + (*it)[4].str();
        slots.emplace(name, slots.size());
    }
    return slots;
}

TEST(OrtApi, SlotsAgreeWithAnOfficialHeader) {
    std::vector<fs::path> headers;
    for (const char* root : {TROCAR_SOURCE_DIR "/.deps", "/usr/include/onnxruntime",
                             "/usr/local/include/onnxruntime"}) {
        std::error_code ignored;
        for (const auto& file : fs::recursive_directory_iterator(root, ignored)) {
            if (file.path().filename() == "onnxruntime_c_api.h") {
                headers.push_back(file.path());
            }
        }
    }
    if (headers.empty()) {
        GTEST_SKIP() << "no onnxruntime_c_api.h on this machine";
    }
    for (const auto& header : headers) {
        const auto slots = slots_of(header);
        ASSERT_GT(slots.size(), 266U) << header;
        for (const auto& entry : declared()) {
            if (entry.since == base_version || slots.contains(entry.name)) {
                ASSERT_TRUE(slots.contains(entry.name)) << entry.name << " in " << header;
                EXPECT_EQ(slots.at(entry.name), entry.slot) << entry.name << " in " << header;
            }
        }
    }
}

}  // namespace
}  // namespace trocar::ort
