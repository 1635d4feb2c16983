#include "engines/onnxruntime/empty_sequence.h"

#include <protozero/pbf_writer.hpp>
#include <string>

namespace trocar::ort {

namespace {

using Message = protozero::pbf_writer;

// The model `y = SequenceEmpty(dtype)` in ONNX's encoding.
std::string model_bytes(DType dtype) {
    const auto number = static_cast<std::int32_t>(dtype);
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
        node.add_string(4, "SequenceEmpty");
        Message attribute(node, 5);
        attribute.add_string(1, "dtype");
        attribute.add_int64(3, number);
        attribute.add_int32(20, 2);  // kind: an integer
    }
    graph.add_string(2, "g");
    Message output(graph, 12);
    output.add_string(1, "y");
    Message type(output, 2);
    Message sequence(type, 4);
    Message element(sequence, 1);
    Message tensor(element, 1);
    tensor.add_int32(1, number);
    return bytes;
}

}  // namespace

Owned make_empty_sequence(const Environment& environment, DType dtype) {
    constexpr const char* what = "make an empty sequence";
    const auto& library = environment.library();
    const auto& call = environment.api();
    const auto bytes = model_bytes(dtype == DType::undefined ? DType::f32 : dtype);

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

}  // namespace trocar::ort
