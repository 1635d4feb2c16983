#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trocar/model.h"

namespace trocar::tflite {

bool matches(Bytes head, const std::filesystem::path& path);

// Throws Error(input) on a broken file, Error(unsupported) on one of another version.
Model read_file(const std::filesystem::path& path);
// `owner` keeps the bytes alive; `path`, which may be empty, is for messages and for files beside.
Model read_bytes(Bytes bytes, std::shared_ptr<const void> owner, const std::filesystem::path& path);

// What a model remembers of its file.
struct Image {
    std::shared_ptr<const void> owner;
    Bytes file;
    std::string doc;
    std::vector<Property> metadata;
    std::vector<Signature> signatures;
    Bytes appended;                            // an archive behind the model: labels and the like
    bool newer = false;                        // holds fields that this version does not know
    std::vector<std::filesystem::path> files;  // beside it, with data
};

// What a graph remembers of its subgraph.
struct GraphImage {
    std::shared_ptr<const void> owner;
    const std::byte* file = nullptr;
    std::size_t number = 0;
    std::int32_t debug_metadata = -1;
};

}  // namespace trocar::tflite
