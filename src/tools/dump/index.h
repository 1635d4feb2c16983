#pragma once

#include <string>
#include <string_view>

#include "trocar/dump.h"

// The lines of an index, as text.
namespace trocar::dump {

constexpr std::string_view schema = "trocar.dump/1";
constexpr std::string_view index_name = "index.jsonl";

std::string head_line(const DumpOptions& options);
std::string set_line(std::uint64_t set, std::span<const DumpInput> inputs);
std::string record_line(const DumpRecord& record, bool histogram);
std::string end_line(std::string_view how, std::uint64_t records);

const char* hash_name(DumpOptions::Hash hash);

// Adds what a line says. Throws Error(input) on a line that is none of an index; `where` names it.
void read_line(std::string_view line, const std::string& where, Dump& dump);

}  // namespace trocar::dump
