#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "trocar/tensor.h"
#include "util/mapped_file.h"

namespace trocar::onnx {

// The files with external data of one model, each mapped once.
class ExternalFiles {
public:
    // `model`: how messages name the model file. `folder` empty: there are none to be found.
    ExternalFiles(std::string model, std::filesystem::path folder)
        : model_(std::move(model)), folder_(std::move(folder)) {}

    // The file at `location`, a path relative to the model's folder. Throws Error(input), naming
    // `tensor`, when it leads outside of that folder (also through a link) or cannot be opened.
    const std::shared_ptr<const MappedFile>& open(std::string_view location,
                                                  std::string_view tensor);
    std::uint64_t total_bytes() const;

private:
    std::string model_;
    std::filesystem::path folder_;
    std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace trocar::onnx
