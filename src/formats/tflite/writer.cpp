#include "formats/tflite/writer.h"

#include <fmt/format.h>

#include "formats/tflite/archive.h"
#include "formats/tflite/model_writer.h"
#include "formats/tflite/reader.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/mapped_file.h"

namespace trocar::tflite {

namespace {

namespace fs = std::filesystem;

const Image* image_of(const Model& model) {
    return model.format == "tflite" && !model.source.bytes.empty()
               ? static_cast<const Image*>(model.image.get())
               : nullptr;
}

// Is the file that the model was read from still what it says?
bool unchanged(const Model& model) {
    const auto* image = image_of(model);
    return image != nullptr && model.intact() && image->doc == model.doc &&
           image->metadata == model.metadata && image->signatures == model.signatures;
}

void check(const Model& model) {
    if (model.dialect != "tflite") {
        throw Error(Fault::unsupported,
                    fmt::format("a model of the dialect '{}' cannot be written as TensorFlow Lite",
                                model.dialect));
    }
    const auto* image = image_of(model);
    if (image != nullptr && image->newer) {
        throw Error(Fault::unsupported,
                    "the file that the model was read from holds fields that this version does not "
                    "know and could not write",
                    "without edits it is written as it was read");
    }
}

// The parts of a rebuilt file in order, with what pads between them.
template <class Write>
void write_all(const Model& model, std::size_t inside, Write&& write) {
    check(model);
    const ModelWriter made(model, inside);
    write(made.flatbuffer());
    std::uint64_t end = made.flatbuffer().size();
    const std::string padding(64, '\0');
    for (const auto& [offset, bytes] : made.behind()) {
        write(std::as_bytes(std::span(padding)).first(offset - end));
        write(bytes);
        end = offset + bytes.size();
    }
    if (const auto* image = image_of(model); image != nullptr && !image->appended.empty()) {
        const auto was = static_cast<std::uint64_t>(image->appended.data() - image->file.data());
        const auto archive = moved_archive(image->appended, was, end);
        write(std::as_bytes(std::span(archive)));
    }
}

void copy_beside(const Model& model, const Image& image, const fs::path& path) {
    for (const auto& location : image.files) {
        const auto from = model.path.parent_path() / location;
        const auto to = path.parent_path() / location;
        std::error_code failure;
        if (fs::equivalent(from, to, failure)) {
            continue;
        }
        if (fs::exists(to, failure)) {
            throw Error(Fault::input,
                        fmt::format("'{}', where the model's external data belongs, is there "
                                    "already",
                                    to.string()),
                        "remove it, or choose another folder");
        }
        fs::create_directories(to.parent_path(), failure);
        FileWriter writer(to);
        writer.write(MappedFile::open(from)->bytes());
        writer.commit();
    }
}

}  // namespace

std::string rebuild(const Model& model, std::size_t inside) {
    std::string all;
    write_all(model, inside, [&](Bytes bytes) {
        all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return all;
}

void write_file(const Model& model, const fs::path& path, const SaveOptions& options) {
    FileWriter writer(path);
    const bool inlined = options.external == ExternalPolicy::inlined &&
                         image_of(model) != nullptr && !image_of(model)->files.empty();
    if (unchanged(model) && !inlined) {
        if (options.external != ExternalPolicy::reference) {
            copy_beside(model, *image_of(model), path);
        }
        writer.write(model.source.bytes);
    } else {
        write_all(model, most_inside, [&](Bytes bytes) { writer.write(bytes); });
    }
    writer.commit();
}

Encoded encode(const Model& model, const EncodeOptions&) {
    Encoded result;
    if (unchanged(model) && image_of(model)->files.empty()) {
        const auto bytes = model.source.bytes;
        result.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } else {
        result.bytes = rebuild(model);
    }
    return result;
}

}  // namespace trocar::tflite
