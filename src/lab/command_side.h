#pragma once

#include <span>

#include "trocar/side.h"

namespace trocar::lab {

// Files that a command is given, and where it must write.
struct CommandFiles {
    std::string model;
    std::string inputs;   // folder: input_0.npy, input_0.bin, input_0.json…
    std::string outputs;  // folder, empty: output_0.npy, or .pb, or raw elements in .bin
};
// The command with the names of files in it. Throws Error(usage) when it has no {model}.
std::string fill_in(const std::string& command, const CommandFiles& files);

// Writes input_0.npy and so on; .pb for what numpy does not hold.
void write_inputs(const std::string& folder, std::span<const Value> inputs);
// Reads what a command wrote, in the order of `names`, as output_0 or by the output's own name.
// Throws Error(engine) on what is missing or cannot be read.
std::vector<Value> read_outputs(const std::string& folder, std::span<const std::string> names,
                                std::span<const Type> expected);

// Throws Error(engine) on what does not have the type that is expected.
void check_outputs(std::span<const Value> outputs, std::span<const std::string> names,
                   std::span<const Type> expected);

// Runs a command on files that are there. Without outputs.
PartRun run_on_files(const SideOptions& options, const CommandFiles& files,
                     const std::function<bool()>& cancel);

// Writes the model and the inputs to a folder that is removed, runs, reads.
PartRun run_command_side(const SideOptions& options, const Model& model,
                         std::span<const Value> inputs, std::span<const std::string> outputs,
                         std::span<const Type> expected);

}  // namespace trocar::lab
