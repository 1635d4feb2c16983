#include "base/kernel_set.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

namespace trocar {

namespace {

constexpr std::array<std::string_view, 26> known = {
    "amx_bf16", "amx_int8",    "amx_tile",    "asimd",       "asimddp",  "asimdhp",  "avx",
    "avx2",     "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx512bw", "avx512dq", "avx512f",
    "avx512vl", "avx_vnni",    "bf16",        "f16c",        "fma",      "fphp",     "i8mm",
    "sse4_1",   "sve",         "sve2",        "svebf16",     "svei8mm"};

}  // namespace

std::string kernel_set(std::string_view cpuinfo) {
    std::istringstream lines{std::string(cpuinfo)};
    std::string line;
    while (std::getline(lines, line)) {
        if (!line.starts_with("flags") && !line.starts_with("Features")) {
            continue;
        }
        std::istringstream words(line);
        std::string word;
        std::array<bool, known.size()> found{};
        while (words >> word) {
            const auto at = std::find(known.begin(), known.end(), word);
            if (at != known.end()) {
                found[static_cast<std::size_t>(at - known.begin())] = true;
            }
        }
        std::string all;
        for (std::size_t i = 0; i < known.size(); ++i) {
            if (found[i]) {
                all += (all.empty() ? "" : " ") + std::string(known[i]);
            }
        }
        return all;
    }
    return {};
}

std::string kernel_set() {
    std::ifstream file("/proc/cpuinfo");
    std::ostringstream text;
    text << file.rdbuf();
    return kernel_set(text.str());
}

}  // namespace trocar
