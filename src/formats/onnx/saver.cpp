#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/onnx/writer.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/mapped_file.h"

namespace trocar::onnx {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t protobuf_limit = (std::uint64_t{1} << 31) - 1;
constexpr std::size_t separate_from = 1024;
constexpr std::size_t copy_step = std::size_t{1} << 24;

std::optional<ExternalData> nowhere(const Constant&) {
    return std::nullopt;
}

void visit_constants(const Graph& graph, const std::function<void(const Constant&)>& visit);

void visit_constant(const Constant& constant, const std::function<void(const Constant&)>& visit) {
    if (constant.is_sparse()) {
        visit(constant.values());
        visit(constant.indices());
    } else {
        visit(constant);
    }
}

void visit_attribute(const Attribute& attribute,
                     const std::function<void(const Constant&)>& visit) {
    if (const auto* one = std::get_if<Constant>(&attribute.value)) {
        visit_constant(*one, visit);
    } else if (const auto* all = std::get_if<std::vector<Constant>>(&attribute.value)) {
        for (const auto& constant : *all) {
            visit_constant(constant, visit);
        }
    }
}

void visit_constants(const Graph& graph, const std::function<void(const Constant&)>& visit) {
    for (const auto id : graph.tensors()) {
        if (const auto& constant = graph.tensor(id).constant) {
            visit_constant(*constant, visit);
        }
    }
    for (const auto id : graph.ops()) {
        for (const auto& attribute : graph.op(id).attributes) {
            visit_attribute(attribute, visit);
        }
        for (const auto& body : graph.op(id).subgraphs()) {
            visit_constants(*body, visit);
        }
    }
}

// The files with external data that a model refers to: location → file.
std::map<std::string, std::string> external_files(const Model& model) {
    std::map<std::string, std::string> files;
    const auto note = [&](const Constant& constant) {
        const auto& place = constant.external();
        if (!place) {
            return;
        }
        const auto [known, fresh] = files.emplace(place->location, place->file);
        if (!fresh && known->second != place->file) {
            throw Error(Fault::unsupported,
                        fmt::format("the model takes external data from two files '{}', '{}' and "
                                    "'{}'",
                                    place->location, known->second, place->file),
                        "write all data into one new file, or into the model");
        }
    };
    visit_constants(model.graph, note);
    for (const auto& function : model.functions) {
        visit_constants(function->body, note);
        for (const auto& attribute : function->defaults) {
            visit_attribute(attribute, note);
        }
    }
    return files;
}

bool same_file(const fs::path& a, const fs::path& b) {
    std::error_code error;
    return fs::equivalent(a, b, error) && !error;
}

bool same_content(const MappedFile& a, const MappedFile& b) {
    if (a.bytes().size() != b.bytes().size()) {
        return false;
    }
    for (std::size_t at = 0; at < a.bytes().size(); at += copy_step) {
        const auto size = std::min(copy_step, a.bytes().size() - at);
        const auto x = a.bytes().subspan(at, size);
        const auto y = b.bytes().subspan(at, size);
        if (!std::equal(x.begin(), x.end(), y.begin())) {
            return false;
        }
        release_pages(x);
        release_pages(y);
    }
    return true;
}

void copy_file(const std::string& from, const fs::path& to) {
    const auto source = MappedFile::open(from);
    std::error_code error;
    if (fs::exists(to, error)) {
        if (!same_content(*source, *MappedFile::open(to))) {
            throw Error(Fault::input,
                        fmt::format("'{}', where the model's external data belongs, is there "
                                    "already and has other content",
                                    to.string()),
                        "remove it, choose another folder, or write the data into the model");
        }
        return;
    }
    fs::create_directories(to.parent_path(), error);
    FileWriter writer(to);
    for (std::size_t at = 0; at < source->bytes().size(); at += copy_step) {
        const auto part =
            source->bytes().subspan(at, std::min(copy_step, source->bytes().size() - at));
        writer.write(part);
        release_pages(part);
    }
    writer.commit();
}

void copy_external(const std::map<std::string, std::string>& files, const fs::path& folder) {
    for (const auto& [location, file] : files) {
        if (file.empty()) {
            throw Error(Fault::input,
                        fmt::format("the external file '{}' of the model is not known", location));
        }
        const auto target = folder / location;
        if (!same_file(file, target)) {
            copy_file(file, target);
        }
    }
}

// Collects data for a file of its own, in the order in which it is asked.
class DataFile {
public:
    explicit DataFile(fs::path path) : path_(std::move(path)) {}

    std::optional<ExternalData> place(const Constant& constant) {
        const auto size = constant.stored_bytes();
        if (size < separate_from) {
            return std::nullopt;
        }
        // Large data begins at a page, so that it can be mapped by itself.
        const std::uint64_t step = size >= (std::size_t{1} << 20) ? 4096 : 64;
        end_ = (end_ + step - 1) / step * step;
        parts_.push_back({end_, &constant});
        const ExternalData where{
            .location = path_.filename().string(), .offset = end_, .length = size, .file = {}};
        end_ += size;
        return where;
    }

    void write() const {
        if (parts_.empty()) {
            return;
        }
        FileWriter writer(path_);
        for (const auto& [offset, constant] : parts_) {
            writer.write(std::string(offset - writer.written(), '\0'));
            const auto bytes = constant->bytes();
            writer.write(bytes);
            if (constant->external()) {
                release_pages(bytes);
            }
        }
        writer.commit();
    }

private:
    struct Part {
        std::uint64_t offset;
        const Constant* constant;
    };
    fs::path path_;
    std::uint64_t end_ = 0;
    std::vector<Part> parts_;
};

void write_rope(const Rope& rope, const Model& model, const fs::path& path) {
    // What was read from a file of that size is written back as it was.
    if (rope.size() > protobuf_limit && !rope.is(model.source.bytes)) {
        throw Error(Fault::unsupported,
                    fmt::format("the model takes {} bytes, and an ONNX file holds at most 2 GB",
                                rope.size()),
                    "write its data into a separate file");
    }
    FileWriter writer(path);
    rope.for_each([&](Bytes piece) { writer.write(piece); });
    writer.commit();
}

}  // namespace

void write_file(const Model& model, const fs::path& path, const SaveOptions& options) {
    const auto folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
    const auto files = external_files(model);
    for (const auto& [location, file] : files) {
        if (same_file(file, path) || (folder / location).lexically_normal() ==
                                         (folder / path.filename()).lexically_normal()) {
            throw Error(Fault::usage,
                        fmt::format("'{}' holds external data of the model and cannot be the "
                                    "model file too",
                                    path.string()),
                        "choose another name");
        }
    }
    switch (options.external) {
        case ExternalPolicy::copy:
        case ExternalPolicy::reference: {
            const auto rope = write_model(model, keep_places());
            if (options.external == ExternalPolicy::copy) {
                copy_external(files, folder);
            }
            write_rope(rope, model, path);
            break;
        }
        case ExternalPolicy::inlined: {
            const auto inside = [](const Constant&, std::string_view) {
                return std::optional<ExternalData>();
            };
            write_rope(write_model(model, {.main = inside,
                                           .nested = nowhere,
                                           .attribute = nowhere,
                                           .moves = !files.empty()}),
                       model, path);
            break;
        }
        case ExternalPolicy::separate: {
            DataFile data(path.string() + ".data");
            const auto rope = write_model(
                model, {.main = [&](const Constant& constant,
                                    std::string_view) { return data.place(constant); },
                        .nested = [&](const Constant& constant) { return data.place(constant); },
                        .attribute = nowhere,
                        .moves = true});
            data.write();
            write_rope(rope, model, path);
            break;
        }
    }
}

Encoded encode(const Model& model, const EncodeOptions& options) {
    constexpr std::uint64_t beyond = std::uint64_t{1} << 50;
    Encoded result;
    result.location = options.location;
    const auto main = [&](const Constant& constant,
                          std::string_view name) -> std::optional<ExternalData> {
        const auto size = constant.stored_bytes();
        if (options.leave_out_from == 0 || size < options.leave_out_from ||
            bits(constant.dtype()) == 0) {
            return std::nullopt;
        }
        result.left_out.emplace_back(name, constant);
        const auto offset = options.offset_is_address
                                ? reinterpret_cast<std::uintptr_t>(constant.bytes().data())
                                : beyond;
        return ExternalData{
            .location = options.location, .offset = offset, .length = size, .file = {}};
    };
    result.bytes =
        write_model(model, {.main = main, .nested = nowhere, .attribute = nowhere, .moves = true})
            .str();
    return result;
}

}  // namespace trocar::onnx
