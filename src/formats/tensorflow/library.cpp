#include "formats/tensorflow/library.h"

#include <fmt/format.h>

#include <map>

#include "formats/tensorflow/schema.h"
#include "trocar/error.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

constexpr std::int64_t resource_type = 20;
constexpr std::int64_t variant_type = 21;

}  // namespace

Library::Library(FilePtr file, Bytes message, std::size_t& results)
    : file_(std::move(file)), results_(&results) {
    for (Fields at(*file_, message, 3); at.next();) {
        if (at.number() != library::function) {
            continue;
        }
        for (Fields inner(*file_, at.bytes(), 4); inner.next();) {
            if (inner.number() != function_def::signature) {
                continue;
            }
            for (Fields signature(*file_, inner.bytes(), 5); signature.next();) {
                if (signature.number() == op_def::name) {
                    entries_.emplace(signature.text(), Entry{at.bytes(), nullptr});
                }
            }
        }
    }
}

const Function& Library::find(const std::string& name) {
    auto& entry = entries_.at(name);
    if (entry.function == nullptr) {
        try {
            entry.function = read(entry.message);
        } catch (const Error& e) {
            throw Error(e.fault(), fmt::format("{} (in function '{}')", e.what(), name), e.hint());
        }
    }
    return *entry.function;
}

Library::Prototype Library::read_prototype(Bytes message) const {
    Prototype result;
    for (Fields at(*file_, message, 5); at.next();) {
        switch (at.number()) {
            case op_def::name:
                result.name = at.text();
                break;
            case op_def::description:
                result.doc = at.text();
                break;
            case op_def::input_arg:
            case op_def::output_arg: {
                GraphReader::Argument argument{.name = {}, .type = {}};
                for (Fields arg(*file_, at.bytes(), 6); arg.next();) {
                    if (arg.number() == arg_def::name) {
                        argument.name = arg.text();
                    } else if (arg.number() == arg_def::type) {
                        const auto type = arg.integer();
                        argument.type.kind = type == resource_type || type == variant_type
                                                 ? Type::Kind::opaque
                                                 : Type::Kind::tensor;
                        argument.type.dtype = argument.type.kind == Type::Kind::tensor
                                                  ? dtype_of(type)
                                                  : DType::undefined;
                    }
                }
                if (at.number() == op_def::input_arg) {
                    result.inputs.push_back(std::move(argument));
                } else {
                    result.outputs.push_back(argument.name);
                }
                break;
            }
            case op_def::attr:
                for (Fields attr(*file_, at.bytes(), 6); attr.next();) {
                    if (attr.number() == arg_def::name) {
                        result.attributes.emplace_back(attr.text());
                    }
                }
                break;
            default:
                break;
        }
    }
    return result;
}

// What the file knows of the shapes of its arguments.
void Library::read_shapes(Bytes message, Prototype& prototype) const {
    std::size_t i = 0;
    for (Fields value(*file_, message, 6); value.next();) {
        if (value.number() != attr_value::list) {
            continue;
        }
        for (Fields list(*file_, value.bytes(), 7); list.next();) {
            if (list.number() == attr_list::shape && i < prototype.inputs.size()) {
                auto& type = prototype.inputs[i++].type;
                if (type.kind == Type::Kind::tensor) {
                    type.dims = read_shape(*file_, list.bytes());
                }
            }
        }
    }
}

std::shared_ptr<const Function> Library::read(Bytes message) {
    auto result = std::make_shared<Function>();
    result->source.bytes = message;
    Prototype prototype;
    std::vector<Node> nodes;
    std::map<std::string, std::string> returns;
    Bytes shapes;
    for (Fields at(*file_, message, 4); at.next();) {
        switch (at.number()) {
            case function_def::signature:
                prototype = read_prototype(at.bytes());
                break;
            case function_def::node:
                nodes.push_back(read_node(file_, at.bytes(), 5));
                break;
            case function_def::attr:
                if (const auto [key, value] = read_entry(file_, at.bytes());
                    key == "_input_shapes") {
                    shapes = value;
                }
                break;
            case function_def::ret: {
                std::string key;
                std::string value;
                for (Fields pair(*file_, at.bytes(), 5); pair.next();) {
                    (pair.number() == entry::key ? key : value) = pair.text();
                }
                returns.emplace(key, value);
                break;
            }
            default:
                break;
        }
    }
    read_shapes(shapes, prototype);
    result->name = prototype.name;
    result->doc = prototype.doc;
    result->attributes = prototype.attributes;
    std::vector<std::string> results;
    for (const auto& output : prototype.outputs) {
        const auto found = returns.find(output);
        if (found == returns.end()) {
            wire::fail_in(*file_, message,
                          fmt::format("it does not say what it returns as '{}'", output));
        }
        results.push_back(found->second);
    }
    GraphReader reader(file_, nullptr, *results_);
    result->body = reader.read_body(std::move(nodes), prototype.inputs, results);
    result->body.name = result->name;
    return result;
}

}  // namespace trocar::tensorflow
