#include "engines/openvino/ov_api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <type_traits>
#include <vector>

namespace trocar::ov {
namespace {

namespace fs = std::filesystem;

// A type as the official headers write it.
template <class T>
std::string text() {
    if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) {
        return "ov_util_log_callback_func";
    } else if constexpr (std::is_pointer_v<T>) {
        return text<std::remove_pointer_t<T>>() + "*";
    } else if constexpr (std::is_const_v<T>) {
        return "const " + text<std::remove_const_t<T>>();
    } else if constexpr (std::is_same_v<T, void>) {
        return "void";
    } else if constexpr (std::is_same_v<T, char>) {
        return "char";
    } else if constexpr (std::is_same_v<T, std::size_t>) {
        return "size_t";
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
        return "int64_t";
    } else if constexpr (std::is_same_v<T, Status>) {
        return "ov_status_e";
    } else if constexpr (std::is_same_v<T, ElementType>) {
        return "ov_element_type_e";
    } else if constexpr (std::is_same_v<T, Core>) {
        return "ov_core_t";
    } else if constexpr (std::is_same_v<T, Source>) {
        return "ov_model_t";
    } else if constexpr (std::is_same_v<T, Compiled>) {
        return "ov_compiled_model_t";
    } else if constexpr (std::is_same_v<T, Request>) {
        return "ov_infer_request_t";
    } else if constexpr (std::is_same_v<T, TensorHandle>) {
        return "ov_tensor_t";
    } else if constexpr (std::is_same_v<T, Port>) {
        return "ov_output_const_port_t";
    } else if constexpr (std::is_same_v<T, Dimensions>) {
        return "ov_shape_t";
    } else if constexpr (std::is_same_v<T, Version>) {
        return "ov_version_t";
    } else if constexpr (std::is_same_v<T, Devices>) {
        return "ov_available_devices_t";
    } else if constexpr (std::is_same_v<T, KernelInfo>) {
        return "ov_profiling_info_t";
    } else {
        static_assert(std::is_same_v<T, KernelInfos>);
        return "ov_profiling_info_list_t";
    }
}

template <class Result, class... Parameters>
std::string text_of(const Function<Result(Parameters...)>& /*function*/) {
    return fmt::format("{}({})", text<Result>(),
                       fmt::join(std::vector<std::string>{text<Parameters>()...}, ", "));
}
template <class Result, class... Parameters>
std::string text_of(const Function<Result(Parameters..., ...)>& /*function*/) {
    return fmt::format("{}({}, ...)", text<Result>(),
                       fmt::join(std::vector<std::string>{text<Parameters>()...}, ", "));
}

std::map<std::string, std::string> declared() {
    std::map<std::string, std::string> functions;
    Api().each([&](const auto& function) { functions[function.name] = text_of(function); });
    return functions;
}

// All official headers in a folder, without comments, spaces as one.
std::string read_headers(const fs::path& folder) {
    std::string all;
    for (const auto& file : fs::directory_iterator(folder)) {
        if (!file.is_regular_file()) {
            continue;
        }
        std::ifstream in(file.path());
        all += std::string{std::istreambuf_iterator<char>(in), {}};
    }
    all = std::regex_replace(all, std::regex(R"(//[^\n]*)"), "");
    std::string plain;
    for (std::size_t i = 0; i < all.size();) {
        if (all.compare(i, 2, "/*") == 0) {
            i = std::min(all.find("*/", i), all.size() - 2) + 2;
        } else {
            plain += all[i++];
        }
    }
    return std::regex_replace(plain, std::regex(R"(\s+)"), " ");
}

// "const size_t idx" → "size_t"; "const char* name" → "const char*": what stands by value is const
// for the callee alone.
std::string without_name(std::string parameter) {
    parameter = std::regex_replace(parameter, std::regex(R"(^ +| +$)"), "");
    if (parameter == "...") {
        return parameter;
    }
    parameter = std::regex_replace(parameter, std::regex(R"( ?\w+$)"), "");
    const bool pointer = parameter.find('*') != std::string::npos;
    return pointer ? parameter : std::regex_replace(parameter, std::regex("^const "), "");
}

// The functions of the headers, as `text_of` writes them.
std::map<std::string, std::string> functions_in(const std::string& headers) {
    std::map<std::string, std::string> functions;
    const std::regex declaration(R"(OPENVINO_C_API\(([^)]*)\) (\w+)\(([^;{]*)\);)");
    for (std::sregex_iterator it(headers.begin(), headers.end(), declaration), none; it != none;
         ++it) {
        const auto list = (*it)[3].str();
        const std::regex comma(",");
        std::vector<std::string> parameters;
        for (std::sregex_token_iterator part(list.begin(), list.end(), comma, -1), end; part != end;
             ++part) {
            if (!part->str().empty()) {
                parameters.push_back(without_name(part->str()));
            }
        }
        functions[(*it)[2]] = fmt::format("{}({})", (*it)[1].str(), fmt::join(parameters, ", "));
    }
    return functions;
}

// The enumerators of the element types, numbered.
std::map<std::string, int> element_types_in(const std::string& headers) {
    std::map<std::string, int> numbers;
    std::smatch found;
    if (std::regex_search(headers, found, std::regex(R"(enum \{([^}]*)\} ov_element_type_e)"))) {
        const auto list = found[1].str();
        int next = 0;
        const std::regex entry(R"((\w+)( = (\w+))?)");
        for (std::sregex_iterator it(list.begin(), list.end(), entry), none; it != none; ++it) {
            const auto value = (*it)[3].str();
            next = value.empty() ? next : numbers.contains(value) ? numbers[value] : 0;
            numbers[(*it)[1]] = next++;
        }
    }
    return numbers;
}

// "int64_t rank; int64_t* dims;" for ov_shape_t.
std::string fields_in(const std::string& headers, const std::string& name) {
    std::smatch found;
    const std::regex before(R"(typedef struct( \w+)? \{((?:[^{}]|\{[^}]*\})*)\} )" + name + ";");
    return std::regex_search(headers, found, before) ? found[2].str() : "";
}

TEST(OvApi, EveryFunctionIsVisited) {
    static_assert(sizeof(Api) % sizeof(Function<void()>) == 0);
    EXPECT_EQ(declared().size(), sizeof(Api) / sizeof(Function<void()>));
}

TEST(OvApi, AgreesWithTheOfficialHeaders) {
    std::vector<fs::path> folders;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(TROCAR_SOURCE_DIR "/.deps", ignored)) {
        if (const auto folder = entry.path() / "openvino/include/openvino/c"; fs::exists(folder)) {
            folders.push_back(folder);
        }
    }
    if (folders.empty()) {
        GTEST_SKIP() << "no headers of OpenVINO in the dependency folder";
    }
    for (const auto& folder : folders) {
        const auto headers = read_headers(folder);
        const auto official = functions_in(headers);
        ASSERT_GT(official.size(), 100U) << folder;
        for (const auto& [name, signature] : declared()) {
            ASSERT_TRUE(official.contains(name)) << name << " in " << folder;
            EXPECT_EQ(official.at(name), signature) << name << " in " << folder;
        }

        const auto types = element_types_in(headers);
        const std::pair<const char*, ElementType> ours[]{
            {"DYNAMIC", ElementType::dynamic}, {"BOOLEAN", ElementType::boolean},
            {"BF16", ElementType::bf16},       {"F16", ElementType::f16},
            {"F32", ElementType::f32},         {"F64", ElementType::f64},
            {"I4", ElementType::i4},           {"I8", ElementType::i8},
            {"I16", ElementType::i16},         {"I32", ElementType::i32},
            {"I64", ElementType::i64},         {"U2", ElementType::u2},
            {"U4", ElementType::u4},           {"U8", ElementType::u8},
            {"U16", ElementType::u16},         {"U32", ElementType::u32},
            {"U64", ElementType::u64},         {"F8E4M3", ElementType::f8e4m3},
            {"F8E5M3", ElementType::f8e5m2},   {"STRING", ElementType::string},
            {"F4E2M1", ElementType::f4e2m1},   {"F8E8M0", ElementType::f8e8m0}};
        for (const auto& [name, number] : ours) {
            ASSERT_TRUE(types.contains(name)) << name << " in " << folder;
            EXPECT_EQ(types.at(name), static_cast<int>(number)) << name << " in " << folder;
        }

        EXPECT_EQ(fields_in(headers, "ov_shape_t"), " int64_t rank; int64_t* dims; ");
        EXPECT_EQ(fields_in(headers, "ov_version_t"),
                  " const char* buildNumber; const char* description; ");
        EXPECT_EQ(fields_in(headers, "ov_available_devices_t"), " char** devices; size_t size; ");
        EXPECT_EQ(fields_in(headers, "ov_profiling_info_t"),
                  " enum Status { NOT_RUN, OPTIMIZED_OUT, EXECUTED } status; int64_t real_time; "
                  "int64_t cpu_time; const char* node_name; const char* exec_type; const char* "
                  "node_type; ");
        EXPECT_EQ(fields_in(headers, "ov_profiling_info_list_t"),
                  " ov_profiling_info_t* profiling_infos; size_t size; ");
    }
}

}  // namespace
}  // namespace trocar::ov
