#include "engines/onnxruntime/empty.h"

#include <protozero/pbf_writer.hpp>
#include <string>

#include "trocar/error.h"

namespace trocar::ort {

namespace {

using Message = protozero::pbf_writer;

// A TypeProto. Tensors: field 1, sequences: 4, optionals: 9; what is inside is their field 1.
void write_type(Message& out, const Type& type) {
    if (type.kind == Type::Kind::sequence || type.kind == Type::Kind::optional) {
        Message wrapper(out, type.kind == Type::Kind::sequence ? 4 : 9);
        Message element(wrapper, 1);
        write_type(element, type.element.empty() ? Type::tensor(DType::f32) : type.element.front());
        return;
    }
    Message tensor(out, 1);
    tensor.add_int32(1, static_cast<std::int32_t>(type.dtype));
}

// A model with one op without inputs, whose output "y" is of `type`.
template <class Attribute>
std::string one_op_model(const char* op, const Type& type, const Attribute& write_attribute) {
    std::string bytes;
    Message model(bytes);
    model.add_int64(1, 8);  // IR version
    {
        Message opset(model, 8);
        opset.add_int64(2, 15);
    }
    Message graph(model, 7);
    {
        Message node(graph, 1);
        node.add_string(2, "y");
        node.add_string(4, op);
        Message attribute(node, 5);
        write_attribute(attribute);
    }
    graph.add_string(2, "g");
    Message output(graph, 12);
    output.add_string(1, "y");
    Message declared(output, 2);
    write_type(declared, type);
    return bytes;
}

Owned run_model(const Environment& environment, const std::string& bytes) {
    constexpr const char* what = "make an empty value";
    const auto& library = environment.library();
    const auto& call = environment.api();

    SessionOptions* options = nullptr;
    library.check(call(create_session_options, &options), what);
    const auto release_options = [&call](SessionOptions* p) { call(release_session_options, p); };
    const std::unique_ptr<SessionOptions, decltype(release_options)> options_owner(options,
                                                                                   release_options);
    library.check(call(set_intra_op_threads, options, 1), what);

    Session* session = nullptr;
    library.check(call(create_session_from_array, environment.get(), bytes.data(), bytes.size(),
                       options, &session),
                  what);
    const auto release = [&call](Session* p) { call(release_session, p); };
    const std::unique_ptr<Session, decltype(release)> session_owner(session, release);

    const char* name = "y";
    OrtValue* output = nullptr;
    library.check(call(run_session, session, nullptr, nullptr, nullptr, std::size_t{0}, &name,
                       std::size_t{1}, &output),
                  what);
    return {call, output};
}

}  // namespace

Owned empty_optional(const Environment& environment, const Type& type) {
    return run_model(environment, one_op_model("Optional", type, [&](Message& attribute) {
                         attribute.add_string(1, "type");
                         attribute.add_int32(20, 13);  // kind: a type
                         Message contained(attribute, 14);
                         write_type(contained, type.element.empty() ? Type::tensor(DType::f32)
                                                                    : type.element.front());
                     }));
}

Owned empty_sequence(const Environment& environment, DType dtype) {
    if (dtype == DType::undefined) {
        dtype = DType::f32;
    }
    const Type type{Type::Kind::sequence, DType::undefined, std::nullopt, {Type::tensor(dtype)}};
    return run_model(environment, one_op_model("SequenceEmpty", type, [&](Message& attribute) {
                         attribute.add_string(1, "dtype");
                         attribute.add_int32(20, 2);  // kind: an integer
                         attribute.add_int64(3, static_cast<std::int64_t>(dtype));
                     }));
}

}  // namespace trocar::ort
