#include "tools/profile/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "trocar/error.h"
#include "util/files.h"

namespace trocar::profiles {

namespace {

// Below this share of what is attainable something else than arithmetic and memory takes the time.
constexpr double overhead_below = 0.1;

std::string text_of(const std::vector<Scalar>& context, std::string_view key) {
    for (const auto& scalar : context) {
        if (scalar.key == key) {
            return show(scalar.value, Show::plain);
        }
    }
    return {};
}

// What the peaks depend on.
std::string key_of(Context& context) {
    const auto facts = context.describe(Model{}, true);
    return fmt::format("{} / {} / {} {} / {} threads", text_of(facts, "host"),
                       text_of(facts, "cpu"), text_of(facts, "engine"),
                       text_of(facts, "engine_version"), context.threads());
}

Json read_cache(const std::filesystem::path& file) {
    std::error_code failure;
    if (file.empty() || !std::filesystem::exists(file, failure)) {
        return Json::object();
    }
    auto cache = Json::parse(read_file(file));
    return cache && cache->is_object() ? *std::move(cache) : Json::object();
}

void write_cache(const std::filesystem::path& file, const Json& cache, Context& context) {
    std::error_code failure;
    std::filesystem::create_directories(file.parent_path(), failure);
    try {
        write_file(file, cache.dump(1) + "\n");
    } catch (const Error& e) {
        context.log(LogLevel::info, fmt::format("peaks are not kept: {}", e.what()));
    }
}

}  // namespace

Roof roof_of(const Row& row, const std::optional<Peaks>& peaks) {
    Roof roof;
    const double seconds = row.total.typical * 1e-9;
    if (seconds <= 0) {
        return roof;
    }
    if (row.flops && *row.flops > 0) {
        roof.flops = static_cast<double>(*row.flops) / seconds;
    }
    if (row.bytes) {
        roof.bytes = static_cast<double>(*row.bytes) / seconds;
    }
    if (!peaks || !row.bytes || !row.flops || *row.bytes == 0) {
        return roof;
    }
    const auto work = static_cast<double>(*row.flops);
    const double by_compute = work / peaks->flops;
    const double by_memory = static_cast<double>(*row.bytes) / peaks->bytes;
    roof.headroom = std::max(by_compute, by_memory) / seconds;
    roof.bound = *roof.headroom < overhead_below ? "overhead"
                 : by_compute > by_memory        ? "compute"
                                                 : "memory";
    return roof;
}

Peaks find_peaks(Context& context, bool measure_anew) {
    const auto folder = context.cache_folder();
    const auto file = folder.empty() ? folder : folder / "peaks.json";
    auto cache = read_cache(file);
    const auto key = key_of(context);
    const auto* known = cache.find(key);
    if (!measure_anew && known != nullptr && known->is_object() &&
        known->number_or("flops", 0) > 0 && known->number_or("bytes", 0) > 0) {
        return {known->number_or("flops", 0), known->number_or("bytes", 0), context.threads()};
    }
    context.progress("measuring peaks", 0, 0);
    const auto peaks = measure_peaks(*context.engine(), context.threads());
    if (!file.empty()) {
        cache[key] =
            Json::object(Json::Order::sorted, {{"flops", peaks.flops}, {"bytes", peaks.bytes}});
        write_cache(file, cache, context);
    }
    return peaks;
}

}  // namespace trocar::profiles
