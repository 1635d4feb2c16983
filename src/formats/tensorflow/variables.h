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

    // What restoring the model gives to its variables, by the names of their nodes.
    void set_restored(std::map<std::string, std::string> keys) { restored_ = std::move(keys); }

    std::optional<Variable> find(const Node& node) const;
    std::uint64_t bytes() const { return bundle_ ? bundle_->bytes() : 0; }

private:
    std::string read_key(const File& checkpoint, Bytes message);
    void read_variable(const File& file, Bytes message, const std::string& key);
    Variable variable(const std::string& name, Constant value) const;

    std::shared_ptr<const Bundle> bundle_;
    std::map<std::string, std::string> keys_;   // in the checkpoint, by name
    std::map<std::string, std::string> names_;  // by key
    std::map<std::string, std::string> restored_;
    std::map<std::string, bool> trainable_;
};

}  // namespace trocar::tensorflow
