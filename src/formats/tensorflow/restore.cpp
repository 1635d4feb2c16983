#include "formats/tensorflow/restore.h"

#include <charconv>
#include <unordered_map>

#include "formats/tensorflow/schema.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

constexpr std::string_view restores = "traced_restore";  // in the function's name

struct Body {
    std::vector<std::string> arguments;
    std::unordered_map<std::string, Node> nodes;
};

// "node:output:3" → node, 3.
std::pair<std::string, std::size_t> parts(const std::string& reference) {
    const auto first = reference.find(':');
    const auto last = reference.rfind(':');
    std::size_t number = 0;
    if (last != std::string::npos) {
        std::from_chars(reference.data() + last + 1, reference.data() + reference.size(), number);
    }
    return {reference.substr(0, first), number};
}

// The function's name, and what it takes.
std::string read_signature(const File& file, Bytes message, Body& body) {
    std::string name;
    for (Fields at(file, message, 5); at.next();) {
        if (at.number() == op_def::name) {
            name = at.text();
        } else if (at.number() == op_def::input_arg) {
            auto& argument = body.arguments.emplace_back();
            for (Fields inner(file, at.bytes(), 6); inner.next();) {
                if (inner.number() == arg_def::name) {
                    argument = inner.text();
                }
            }
        }
    }
    return name;
}

std::unordered_map<std::string, Body> read_functions(const FilePtr& file, Bytes library) {
    std::unordered_map<std::string, Body> found;
    for (Fields at(*file, library, 3); at.next();) {
        if (at.number() != library::function) {
            continue;
        }
        Body body;
        std::string name;
        for (Fields inner(*file, at.bytes(), 4); inner.next();) {
            if (inner.number() == function_def::signature) {
                name = read_signature(*file, inner.bytes(), body);
            }
        }
        if (name.find(restores) == std::string::npos) {
            continue;
        }
        for (Fields inner(*file, at.bytes(), 4); inner.next();) {
            if (inner.number() == function_def::node) {
                auto node = read_node(file, inner.bytes(), 5);
                body.nodes.emplace(node.spec.name, std::move(node));
            }
        }
        found.emplace(std::move(name), std::move(body));
    }
    return found;
}

const Node* find(const Body& body, const std::string& name, std::string_view type) {
    const auto found = body.nodes.find(name);
    return found == body.nodes.end() || found->second.spec.type != type ? nullptr : &found->second;
}

std::vector<std::string> texts_of(const Node& constant) {
    for (const auto& attribute : constant.spec.attributes) {
        const auto* value = std::get_if<Constant>(&attribute.value);
        if (attribute.name == "value" && value != nullptr && value->is_string()) {
            return value->string_values();
        }
    }
    return {};
}

// The key that an assignment's value is read by; "" where it is none of the checkpoint.
std::string key_of(const Body& body, const Node& assignment) {
    auto from = parts(assignment.inputs[1]);
    if (const auto* same = find(body, from.first, "Identity"); same && !same->inputs.empty()) {
        from = parts(same->inputs[0]);
    }
    const auto* restore = find(body, from.first, "RestoreV2");
    if (restore == nullptr || restore->inputs.size() < 2) {
        return {};
    }
    const auto* names = find(body, parts(restore->inputs[1]).first, "Const");
    const auto keys = names == nullptr ? std::vector<std::string>{} : texts_of(*names);
    return from.second < keys.size() ? keys[from.second] : std::string();
}

}  // namespace

std::map<std::string, std::string> restored_keys(const FilePtr& file,
                                                 const std::vector<Node>& nodes, Bytes library) {
    std::map<std::string, std::string> found;
    const auto functions = read_functions(file, library);
    for (const auto& call : nodes) {
        std::string name;
        for (const auto& attribute : call.spec.attributes) {
            const auto* text = std::get_if<std::string>(&attribute.value);
            if (attribute.name == "f" && text != nullptr) {
                name = *text;
            }
        }
        const auto function = functions.find(name);
        if (function == functions.end()) {
            continue;
        }
        std::unordered_map<std::string, std::string> given;  // arguments to ops of variables
        const auto& arguments = function->second.arguments;
        for (std::size_t i = 0; i < arguments.size() && i < call.inputs.size(); ++i) {
            given.emplace(arguments[i], call.inputs[i]);
        }
        for (const auto& [_, node] : function->second.nodes) {
            if (node.spec.type != "AssignVariableOp" || node.inputs.size() < 2) {
                continue;
            }
            const auto variable = given.find(node.inputs[0]);
            auto key = key_of(function->second, node);
            if (variable != given.end() && !key.empty()) {
                found.emplace(variable->second, std::move(key));
            }
        }
    }
    return found;
}

}  // namespace trocar::tensorflow
