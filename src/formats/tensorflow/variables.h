#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "formats/tensorflow/bundle.h"
#include "formats/tensorflow/graph_reader.h"

namespace trocar::tensorflow {

// The variables of a SavedModel: their values in its checkpoint, by the names that their ops have.
class Variables {
public:
    Variables() = default;  // there are none
    // `folder`: that of the SavedModel; without a checkpoint in it there are no values. `objects`:
    // the graph of objects in the SavedModel.
    Variables(const std::filesystem::path& folder, const File& file, Bytes objects);

    // What the model's own function restores, by the names of ops; it counts more than names.
    void set_restored(std::map<std::string, std::string> keys) { restored_ = std::move(keys); }

    std::optional<Variable> find(const Node& node) const;
    std::uint64_t bytes() const { return bundle_ ? bundle_->bytes() : 0; }

private:
    std::string read_key(const File& checkpoint, Bytes message);
    void read_variable(const File& file, Bytes message, const std::string& key);

    std::shared_ptr<const Bundle> bundle_;
    std::map<std::string, std::string> keys_;  // in the checkpoint, by name
    std::map<std::string, std::string> restored_;
    std::map<std::string, bool> trainable_;  // by name, and by key
};

}  // namespace trocar::tensorflow
