#include "formats/tensorflow/variables.h"

#include "formats/tensorflow/schema.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

constexpr const char* object_graph_key = "_CHECKPOINTABLE_OBJECT_GRAPH";

}  // namespace

Variables::Variables(const std::filesystem::path& folder, const File& file, Bytes objects) {
    const auto prefix = folder / "variables" / "variables";
    std::error_code failure;
    if (!std::filesystem::exists(prefix.string() + ".index", failure)) {
        return;
    }
    bundle_ = std::make_shared<const Bundle>(prefix);
    // The objects of the model and those of its checkpoint have the same numbers.
    const auto text = bundle_->text(object_graph_key);
    const File checkpoint{.name = prefix.string(),
                          .bytes = std::as_bytes(std::span(text)),
                          .owner = nullptr,
                          .folder = {},
                          .kind = "TensorFlow checkpoint"};
    std::vector<std::string> keys;
    for (Fields at(checkpoint, checkpoint.bytes); at.next();) {
        if (at.number() == object_graph::node) {
            keys.push_back(read_key(checkpoint, at.bytes()));
        }
    }
    std::size_t number = 0;
    for (Fields at(file, objects, 2); at.next();) {
        if (at.number() != object_graph::node) {
            continue;
        }
        for (Fields object(file, at.bytes(), 3); object.next();) {
            if (object.number() == saved_object::variable) {
                read_variable(file, object.bytes(), number < keys.size() ? keys[number] : "");
            }
        }
        ++number;
    }
}

// Notes the full names of an object's tensors; the key of its value as a variable.
std::string Variables::read_key(const File& checkpoint, Bytes message) {
    std::string own;
    for (Fields at(checkpoint, message, 1); at.next();) {
        if (at.number() != trackable::attribute) {
            continue;
        }
        std::string name;
        std::string full_name;
        std::string key;
        for (Fields tensor(checkpoint, at.bytes(), 2); tensor.next();) {
            if (tensor.number() == serialized_tensor::name) {
                name = tensor.text();
            } else if (tensor.number() == serialized_tensor::full_name) {
                full_name = tensor.text();
            } else if (tensor.number() == serialized_tensor::key) {
                key = tensor.text();
            }
        }
        if (!full_name.empty()) {
            keys_.emplace(full_name, key);
        }
        if (name == "VARIABLE_VALUE") {
            own = key;
        }
    }
    return own;
}

void Variables::read_variable(const File& file, Bytes message, const std::string& key) {
    std::string name;
    bool trainable = false;
    for (Fields at(file, message, 4); at.next();) {
        if (at.number() == saved_variable::name) {
            name = at.text();
        } else if (at.number() == saved_variable::trainable) {
            trainable = at.integer() != 0;
        }
    }
    if (!key.empty()) {
        trainable_.emplace(key, trainable);
    }
    if (!name.empty()) {
        trainable_.emplace(name, trainable);
        if (!key.empty()) {
            keys_.emplace(name, key);
        }
    }
}

std::optional<Variable> Variables::find(const Node& node) const {
    if (!bundle_) {
        return std::nullopt;
    }
    const auto kind_of = [&](const std::string& name) {
        const auto told = trainable_.find(name);
        return told == trainable_.end() || told->second ? "parameter" : "buffer";
    };
    if (const auto key = restored_.find(node.spec.name); key != restored_.end()) {
        if (auto constant = bundle_->find(key->second)) {
            return Variable{std::move(*constant), kind_of(key->second)};
        }
    }
    std::vector<std::string> names{node.spec.name};
    for (const auto& attribute : node.spec.attributes) {
        const auto* text = std::get_if<std::string>(&attribute.value);
        if (attribute.name == "shared_name" && text != nullptr && !text->empty()) {
            names.insert(names.begin(), *text);
        }
    }
    for (const auto& name : names) {
        const auto key = keys_.find(name);
        auto constant = bundle_->find(key == keys_.end() ? name : key->second);
        if (constant) {
            return Variable{std::move(*constant), kind_of(name)};
        }
    }
    return std::nullopt;
}

}  // namespace trocar::tensorflow
