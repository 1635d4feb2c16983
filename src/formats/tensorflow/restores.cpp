#include "formats/tensorflow/restores.h"

#include <charconv>

#include "formats/tensorflow/schema.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

// A function as far as restoring goes: its arguments, and its nodes by name.
struct Body {
    std::vector<std::string> arguments;
    std::map<std::string, Node> nodes;
};

Body read_body(const FilePtr& file, Bytes message) {
    Body body;
    for (Fields at(*file, message, 4); at.next();) {
        if (at.number() == function_def::node) {
            auto node = read_node(file, at.bytes(), 5);
            body.nodes.emplace(node.spec.name, std::move(node));
        } else if (at.number() == function_def::signature) {
            for (Fields signature(*file, at.bytes(), 5); signature.next();) {
                if (signature.number() != op_def::input_arg) {
                    continue;
                }
                for (Fields argument(*file, signature.bytes(), 6); argument.next();) {
                    if (argument.number() == arg_def::name) {
                        body.arguments.emplace_back(argument.text());
                    }
                }
            }
        }
    }
    return body;
}

std::string node_of(const std::string& reference) {
    return reference.substr(0, reference.find(':'));
}

const Node* find(const Body& body, const std::string& reference, const char* type) {
    const auto at = body.nodes.find(node_of(reference));
    return at == body.nodes.end() || at->second.spec.type != type ? nullptr : &at->second;
}

template <class T>
const T* attribute(const Node& node, std::string_view name) {
    for (const auto& one : node.spec.attributes) {
        if (one.name == name) {
            return std::get_if<T>(&one.value);
        }
    }
    return nullptr;
}

// The key of what "Identity_3:output:0" passes on: a result of the op that reads the checkpoint.
std::string key_of(const Body& body, std::string reference) {
    for (std::size_t steps = 0; steps <= body.nodes.size(); ++steps) {
        const auto* passed = find(body, reference, "Identity");
        if (passed == nullptr || passed->inputs.size() != 1) {
            break;
        }
        reference = passed->inputs[0];
    }
    const auto* read = find(body, reference, "RestoreV2");
    const auto* names =
        read == nullptr || read->inputs.size() < 2 ? nullptr : find(body, read->inputs[1], "Const");
    const auto* keys = names == nullptr ? nullptr : attribute<Constant>(*names, "value");
    if (keys == nullptr || !keys->is_string()) {
        return {};
    }
    std::size_t number = 0;
    const auto colon = reference.rfind(':');
    if (colon != std::string::npos) {
        const auto* const end = reference.data() + reference.size();
        const auto [last, failure] = std::from_chars(reference.data() + colon + 1, end, number);
        if (failure != std::errc() || last != end) {
            return {};
        }
    }
    const auto texts = keys->string_values();
    return number < texts.size() ? std::string(texts[number]) : std::string();
}

}  // namespace

std::map<std::string, std::string> restored_keys(const FilePtr& file,
                                                 const std::vector<Node>& nodes,
                                                 const Library& library,
                                                 const std::string& restore) {
    std::map<std::string, std::string> keys;
    for (const auto& node : nodes) {
        const auto* function =
            node.spec.name == node_of(restore) ? attribute<std::string>(node, "f") : nullptr;
        if (function == nullptr || !library.contains(*function)) {
            continue;
        }
        const auto body = read_body(file, library.message(*function));
        std::map<std::string, std::string> given;  // nodes by the arguments that they are
        for (std::size_t i = 0; i < body.arguments.size() && i < node.inputs.size(); ++i) {
            given.emplace(body.arguments[i], node_of(node.inputs[i]));
        }
        for (const auto& [name, inner] : body.nodes) {
            if (inner.spec.type != "AssignVariableOp" || inner.inputs.size() != 2) {
                continue;
            }
            const auto variable = given.find(node_of(inner.inputs[0]));
            auto key = key_of(body, inner.inputs[1]);
            if (variable != given.end() && !key.empty()) {
                keys.emplace(variable->second, std::move(key));
            }
        }
    }
    return keys;
}

}  // namespace trocar::tensorflow
