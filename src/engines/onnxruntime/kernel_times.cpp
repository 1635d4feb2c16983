#include "engines/onnxruntime/kernel_times.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

#include "base/json.h"
#include "trocar/error.h"

namespace trocar::ort {

namespace {

constexpr double microsecond = 1000;
constexpr std::string_view kernel_suffix = "_kernel_time";

// As the engine names the types of elements; others are undefined.
DType dtype_of(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, DType>, 13> names{{{"float", DType::f32},
                                                                        {"double", DType::f64},
                                                                        {"float16", DType::f16},
                                                                        {"bfloat16", DType::bf16},
                                                                        {"int8", DType::i8},
                                                                        {"int16", DType::i16},
                                                                        {"int32", DType::i32},
                                                                        {"int64", DType::i64},
                                                                        {"uint8", DType::u8},
                                                                        {"uint16", DType::u16},
                                                                        {"uint32", DType::u32},
                                                                        {"uint64", DType::u64},
                                                                        {"bool", DType::boolean}}};
    for (const auto& [text, dtype] : names) {
        if (text == name) {
            return dtype;
        }
    }
    return DType::undefined;
}

// [{"float": [1, 64, 56, 56]}, …]
std::vector<Type> read_types(const Json& arguments) {
    std::vector<Type> types;
    const auto* found = arguments.find("output_type_shape");
    if (found == nullptr || !found->is_array()) {
        return types;
    }
    for (const auto& entry : *found) {
        if (!entry.is_object() || entry.size() != 1) {
            return {};
        }
        const auto& [type, shape] = *entry.items().begin();
        if (!shape.is_array()) {
            return {};
        }
        types.push_back(Type::tensor(dtype_of(type), shape.int64s()));
    }
    return types;
}

// One event stands on each line. Lines that are no JSON are left out: names of ops are not always
// escaped.
class Reader {
public:
    void read(const std::string& line) {
        const auto begin = line.find('{');
        const auto end = line.rfind('}');
        if (begin == std::string::npos || end == std::string::npos || end < begin) {
            return;
        }
        const auto event = Json::parse(std::string_view(line).substr(begin, end - begin + 1));
        if (event && event->is_object()) {
            take(*event);
        }
    }

    KernelTimes finish() {
        times_.resolution_ns = microsecond;
        return std::move(times_);
    }

private:
    void take(const Json& event) {
        auto name = event.string_or("name", "");
        const auto category = event.string_or("cat", "");
        if (category == "Session" && name == "model_run") {
            if (!times_.runs.empty()) {
                for (auto& kernel : times_.runs.back().kernels) {
                    kernel.outputs = {};
                }
            }
            run_.start_ns = event.number_or("ts", 0) * microsecond;
            run_.spent_ns = (event.number_or("dur", 0) + 0.5) * microsecond;
            times_.runs.push_back(std::move(run_));
            run_ = {};
        } else if (category == "Node" && name.ends_with(kernel_suffix)) {
            name.resize(name.size() - kernel_suffix.size());
            auto& kernel = run_.kernels.emplace_back();
            kernel.op = std::move(name);
            kernel.start_ns = event.number_or("ts", 0) * microsecond;
            kernel.spent_ns = (event.number_or("dur", 0) + 0.5) * microsecond;
            if (const auto* arguments = event.find("args")) {
                kernel.outputs = read_types(*arguments);
            }
        }
    }

    KernelTimes times_;
    TimedRun run_;
};

}  // namespace

std::filesystem::path end_session_profiling(const Environment& environment, Session* session) {
    char* path = nullptr;
    const auto& api = environment.api();
    environment.library().check(api(end_profiling, session, environment.allocator(), &path),
                                "write what it measured");
    std::filesystem::path written = path;
    environment.library().check(api(allocator_free, environment.allocator(), path), "free memory");
    return written;
}

KernelTimes read_kernel_times(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) {
        throw Error(Fault::engine,
                    fmt::format("ONNX Runtime wrote no times to '{}'", file.string()),
                    "the folder for temporary files may be full");
    }
    Reader reader;
    for (std::string line; std::getline(stream, line);) {
        reader.read(line);
    }
    return reader.finish();
}

}  // namespace trocar::ort
