#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trocar/report.h"
#include "trocar/tool.h"

// Tools in shared libraries of their own. One file is enough:
//
//     #include <trocar/tool_library.h>
//     struct Counter : trocar::Tool {
//         explicit Counter(const trocar::ToolSettings& settings) { after(…); }
//         void report(trocar::Report& report) const override { … }
//     };
//     TROCAR_TOOL(Counter, "Counts ops")
//
// compiled with `g++ -std=c++20 -shared -fPIC -I PREFIX/include`, linked with nothing: the process
// that loads it has the library.
#pragma GCC visibility push(default)
namespace trocar {

// Changes with every change of what tools are compiled against.
inline constexpr std::uint32_t tool_abi = 1;

// What a tool was given on the command line: NAME.so,key=value,…
class ToolSettings {
public:
    ToolSettings() = default;
    explicit ToolSettings(std::vector<std::pair<std::string, std::string>> pairs,
                          std::uint64_t seed = 0)
        : pairs_(std::move(pairs)), seed_(seed) {}

    // Throw Error(usage) when the value is no number.
    std::string text(std::string_view key, std::string_view otherwise = {}) const;
    double number(std::string_view key, double otherwise) const;
    std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
    // Of --seed.
    std::uint64_t seed() const { return seed_; }
    // A setting that chooses ops. Throws Error(usage) on one that cannot be read.
    Selector selector(std::string_view key, Selector otherwise) const;

    // Keys that were given and never asked for.
    std::vector<std::string> unused() const;

private:
    const std::string* find(std::string_view key) const;
    std::vector<std::pair<std::string, std::string>> pairs_;
    std::uint64_t seed_ = 0;
    mutable std::vector<std::string> used_;
};

// What a tool library shows under the name `trocar_tool`.
struct ToolEntry {
    std::uint32_t abi;
    const char* name;
    const char* summary;
    std::unique_ptr<Tool> (*make)(const ToolSettings& settings);
};

// Loads a tool; it keeps its library loaded. Throws Error(input) when the file is no tool library,
// was made for another version, or lacks symbols; Error(usage) on settings it does not know.
std::shared_ptr<Tool> load_tool(const std::filesystem::path& path, const ToolSettings& settings);

// PATH[,key=value…]. Throws Error(usage).
struct ToolChoice {
    std::filesystem::path path;
    std::vector<std::pair<std::string, std::string>> settings;
};
ToolChoice parse_tool(std::string_view text);

}  // namespace trocar
#pragma GCC visibility pop

// `Type`: a Tool that is made from ToolSettings.
#define TROCAR_TOOL(Type, summary)                                                         \
    extern "C" __attribute__((visibility("default"))) const trocar::ToolEntry trocar_tool; \
    const trocar::ToolEntry trocar_tool{                                                   \
        trocar::tool_abi, #Type, summary,                                                  \
        [](const trocar::ToolSettings& settings) -> std::unique_ptr<trocar::Tool> {        \
            return std::make_unique<Type>(settings);                                       \
        }};
