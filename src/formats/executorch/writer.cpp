#include "formats/executorch/writer.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/executorch/container.h"
#include "formats/executorch/plan_writer.h"
#include "formats/executorch/reader.h"
#include "trocar/error.h"
#include "util/files.h"

namespace trocar::executorch {

namespace {

constexpr std::uint64_t segment_alignment = 128;

const Image* image_of(const Model& model) {
    return model.format == "executorch" && !model.source.bytes.empty()
               ? static_cast<const Image*>(model.image.get())
               : nullptr;
}

// Is the file that the model was read from still what it says?
bool unchanged(const Model& model) {
    const auto* image = image_of(model);
    return image != nullptr && model.intact() && image->metadata == model.metadata;
}

std::uint64_t aligned(std::uint64_t size, std::uint64_t to) {
    return (size + to - 1) / to * to;
}

template <class T>
void put(std::string& bytes, std::size_t place, T number) {
    std::memcpy(bytes.data() + place, &number, sizeof number);
}

// A program without the segments, and the segments.
struct Parts {
    std::string program;  // header included
    Data data;
};

std::string finish(flatbuffers::FlatBufferBuilder& builder,
                   flatbuffers::Offset<fb::Program> program, std::uint64_t segments_size) {
    fb::FinishProgramBuffer(builder, program);
    const std::string_view plain(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                                 builder.GetSize());
    // The header goes in behind the identifier, and everything that is told by its distance from
    // itself stays true.
    std::string bytes(plain.substr(0, header_at));
    bytes += header_mark;
    bytes.resize(header_at + header_size);
    bytes += plain.substr(header_at);
    std::uint32_t root = 0;
    std::memcpy(&root, plain.data(), sizeof root);
    put(bytes, 0, static_cast<std::uint32_t>(root + header_size));
    put(bytes, header_at + 4, static_cast<std::uint32_t>(header_size));
    put(bytes, header_at + 8, static_cast<std::uint64_t>(bytes.size()));
    put(bytes, header_at + 16, aligned(bytes.size(), segment_alignment));
    put(bytes, header_at + 24, segments_size);
    return bytes;
}

Parts make_parts(const Model& model) {
    if (model.dialect != "aten") {
        throw Error(Fault::unsupported,
                    fmt::format("a model of the dialect '{}' cannot be written for ExecuTorch",
                                model.dialect),
                    "`trocar convert` maps it first");
    }
    Parts parts;
    flatbuffers::FlatBufferBuilder builder(1U << 16U);
    std::vector<flatbuffers::Offset<fb::ExecutionPlan>> plans;
    const auto name =
        image_of(model) != nullptr && !model.graph.name.empty() ? model.graph.name : "forward";
    plans.push_back(PlanWriter(builder, model.graph, parts.data).write(name));
    for (const auto& function : model.functions) {
        plans.push_back(PlanWriter(builder, function->body, parts.data).write(function->name));
    }
    std::vector<flatbuffers::Offset<fb::NamedData>> named;
    for (const auto& [key, number] : parts.data.named()) {
        named.push_back(fb::CreateNamedData(builder, builder.CreateString(key), number));
    }
    std::vector<flatbuffers::Offset<fb::DataSegment>> segments;
    std::uint64_t end = parts.data.constants_size();
    segments.push_back(fb::CreateDataSegment(builder, 0, end));
    for (const auto bytes : parts.data.segments()) {
        const auto at = aligned(end, segment_alignment);
        segments.push_back(fb::CreateDataSegment(builder, at, bytes.size()));
        end = at + bytes.size();
    }
    const auto constants =
        fb::CreateSubsegmentOffsets(builder, 0, builder.CreateVector(parts.data.offsets()));
    const auto program = fb::CreateProgram(builder, 0, builder.CreateVector(plans), 0, 0,
                                           builder.CreateVector(segments), constants, 0,
                                           named.empty() ? 0 : builder.CreateVector(named));
    parts.program = finish(builder, program, end);
    return parts;
}

template <class Write>
void write_all(const Model& model, Write&& write) {
    const auto parts = make_parts(model);
    std::uint64_t end = 0;
    const std::string padding(segment_alignment, '\0');
    const auto pad_to = [&](std::uint64_t place) {
        write(std::as_bytes(std::span(padding)).first(place - end));
        end = place;
    };
    const auto add = [&](Bytes bytes) {
        write(bytes);
        end += bytes.size();
    };
    add(std::as_bytes(std::span(parts.program)));
    const auto begin = aligned(end, segment_alignment);
    pad_to(begin);
    for (std::size_t i = 0; i < parts.data.constants().size(); ++i) {
        pad_to(begin + parts.data.offsets()[i + 1]);
        add(parts.data.constants()[i]);
    }
    for (const auto bytes : parts.data.segments()) {
        pad_to(begin + aligned(end - begin, segment_alignment));
        add(bytes);
    }
}

}  // namespace

std::string rebuild(const Model& model) {
    std::string all;
    write_all(model, [&](Bytes bytes) {
        all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return all;
}

void write_file(const Model& model, const std::filesystem::path& path, const SaveOptions&) {
    FileWriter writer(path);
    if (unchanged(model)) {
        writer.write(model.source.bytes);
    } else {
        write_all(model, [&](Bytes bytes) { writer.write(bytes); });
    }
    writer.commit();
}

Encoded encode(const Model& model, const EncodeOptions&) {
    Encoded result;
    if (unchanged(model)) {
        const auto bytes = model.source.bytes;
        result.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } else {
        result.bytes = rebuild(model);
    }
    return result;
}

}  // namespace trocar::executorch
