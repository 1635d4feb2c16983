#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trocar/tensor.h"
#include "util/mapped_file.h"

namespace trocar::tensorflow {

// The tensors of a checkpoint: PREFIX.index, a table of where each lies, and the files
// PREFIX.data-00000-of-00001 that hold their elements.
class Bundle {
public:
    // Throws Error(input) when a file is missing or broken.
    explicit Bundle(const std::filesystem::path& prefix);

    // A tensor as a view of its file; nothing when the checkpoint has none of that name. Tensors of
    // strings and tensors that are stored in slices are Error(unsupported).
    std::optional<Constant> find(const std::string& key) const;
    // The only string of a tensor of strings; empty when there is none of that name.
    std::string text(const std::string& key) const;
    std::vector<std::string> keys() const;
    std::uint64_t bytes() const { return bytes_; }  // of all its files

private:
    struct Place {
        std::int64_t dtype = 0;
        Shape shape;
        std::uint64_t shard = 0;
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        bool sliced = false;
    };
    Place place(const std::string& key, const std::string& message) const;
    Bytes data(const Place& place, const std::string& key) const;

    std::string where_;
    std::map<std::string, std::string> entries_;
    std::vector<std::shared_ptr<const MappedFile>> shards_;
    std::uint64_t bytes_ = 0;
};

}  // namespace trocar::tensorflow
