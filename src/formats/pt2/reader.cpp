#include "formats/pt2/reader.h"

#include <fmt/format.h>

#include <set>

#include "formats/keep_unknown.h"
#include "formats/pt2/signature.h"
#include "formats/pt2/symbolic.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar::pt2 {

namespace {

constexpr std::int64_t newest_schema = 8;
constexpr std::int64_t newest_archive = 0;
constexpr const char* save_again =
    "load it with torch.export.load and save it with torch.export.save of torch 2.9 or newer";

// Before the present layout a program lay in a file of its own, with its tensors as pickles.
constexpr const char* old_program = "serialized_exported_program.json";

class Reader {
public:
    Reader(Bytes bytes, std::shared_ptr<const void> owner, const std::string& name)
        : archive_(bytes, fmt::format("'{}'", name)),
          owner_(std::move(owner)),
          name_(name),
          place_(fmt::format("'{}'", name)) {}

    Model read() {
        check_layout();
        choose_model();
        const auto text = archive_.text(fmt::format("{}models/{}.json", root_, chosen_));
        const auto parsed = Json::parse(text);
        if (!parsed || !parsed->is_object()) {
            place_.fail(fmt::format("'models/{}.json' is no JSON object", chosen_));
        }
        const auto& program = *parsed;
        check_version(program);
        Payloads payloads(archive_, root_, owner_, place_);
        payloads.read_config("data/weights/", fmt::format("{}_weights_config.json", chosen_));
        payloads.read_config("data/constants/", fmt::format("{}_constants_config.json", chosen_));

        Model model;
        read_graph(program, payloads, model);
        describe(program, model);
        for (const auto& [object, file] : payloads.objects()) {
            model.metadata.push_back(
                {fmt::format("object {}", object), fmt::format("'{}', a pickle: not read", file)});
        }
        return model;
    }

private:
    void check_layout() {
        const auto root = archive_.root_of("archive_format");
        if (!root) {
            if (archive_.root_of(old_program)) {
                throw Error(Fault::unsupported,
                            fmt::format("'{}' is an exported program of an older layout, whose "
                                        "tensors are pickles, which are never executed",
                                        name_),
                            save_again);
            }
            throw Error(Fault::input, fmt::format("'{}' is no archive of torch.export", name_));
        }
        root_ = *root;
        if (const auto format = archive_.text(root_ + "archive_format"); format != "pt2") {
            throw Error(Fault::unsupported,
                        fmt::format("'{}' is an archive of the format '{}', not 'pt2'", name_,
                                    format.substr(0, 40)));
        }
        if (archive_.text(root_ + "byteorder") == "big") {
            throw Error(
                Fault::unsupported,
                fmt::format("'{}' was written on a machine of the other byte order", name_));
        }
        const auto version = archive_.text(root_ + "archive_version");
        if (!version.empty() && version != std::to_string(newest_archive)) {
            throw Error(Fault::unsupported,
                        fmt::format("'{}' is an archive of version {}, and versions up to {} are "
                                    "known",
                                    name_, version.substr(0, 20), newest_archive));
        }
    }

    void choose_model() {
        const auto folder = root_ + "models/";
        std::set<std::string> names;
        bool compiled = false;
        for (const auto& member : archive_.members()) {
            const std::string_view name = member.name;
            if (name.starts_with(folder) && name.ends_with(".json")) {
                names.emplace(name.substr(folder.size(), name.size() - folder.size() - 5));
            }
            compiled = compiled || name.starts_with(root_ + "data/aotinductor/");
        }
        if (names.empty()) {
            throw Error(Fault::unsupported, fmt::format("'{}' holds no exported program", name_),
                        compiled ? "what it holds was compiled by AOTInductor: give the program "
                                   "that torch.export.save wrote"
                                 : "");
        }
        chosen_ = names.contains("model") ? "model" : *names.begin();
        names.erase(chosen_);
        others_.assign(names.begin(), names.end());
    }

    void check_version(const Json& program) const {
        const auto& version = place_.object(program, "schema_version");
        const auto& major = place_.member(version, "major");
        if (major.is_null()) {
            place_.fail("it does not say which version of torch's schema it is of");
        }
        if (place_.integer(major, "the version of the schema") > newest_schema) {
            throw Error(Fault::unsupported,
                        fmt::format("'{}' is of version {} of torch's export schema, and versions "
                                    "up to {} are known",
                                    name_, dump_json(major), newest_schema),
                        "a newer Trocar may read it");
        }
    }

    void read_graph(const Json& program, const Payloads& payloads, Model& model) const {
        const auto& graph_module = place_.object(program, "graph_module");
        const auto& graph = place_.object(graph_module, "graph");
        GraphReader reader(place_, graph, 0);
        Signature signature(place_, program, payloads);
        signature.add_inputs(reader);
        reader.add_ops();
        signature.add_outputs(reader);
        model.graph = reader.finish();
        model.graph.name = chosen_;
    }

    void describe(const Json& program, Model& model) const {
        const auto& version = place_.object(program, "schema_version");
        model.ir_version = place_.integer(place_.member(version, "major"), "the schema's version");
        model.metadata.push_back(
            {"schema version", fmt::format("{}.{}", dump_json(place_.member(version, "major")),
                                           dump_json(place_.member(version, "minor")))});
        model.producer = "torch";
        model.producer_version = place_.text(program, "torch_version", "");
        for (const auto& [domain, number] : place_.object(program, "opset_version").items()) {
            model.opsets.push_back({domain == "aten" ? std::string() : domain,
                                    place_.integer(number, "the version of an op set")});
        }
        describe_dimensions(program, model);
        const auto& guards = place_.list(program, "guards_code");
        for (const auto& guard : guards) {
            model.metadata.push_back({"guard", dump_json(guard)});
        }
        keep_unknown(program,
                     {"graph_module", "opset_version", "range_constraints", "schema_version",
                      "torch_version", "guards_code"},
                     model.metadata);
        const auto& graph_module = place_.object(program, "graph_module");
        keep_unknown(graph_module, {"graph", "signature"}, model.metadata);
        if (!others_.empty()) {
            model.metadata.push_back({"other models", fmt::format("{}", join(others_, ", "))});
        }
        const auto samples = fmt::format("data/sample_inputs/{}.pt", chosen_);
        if (const auto* member = archive_.find(root_ + samples);
            member != nullptr && member->size > 0) {
            model.metadata.push_back(
                {"sample inputs", fmt::format("'{}', a pickle: not read", samples)});
        }
        const auto extra = root_ + "extra/";
        for (const auto& member : archive_.members()) {
            if (member.name.starts_with(extra)) {
                model.metadata.push_back(
                    {"extra file",
                     fmt::format("'{}', {} bytes", member.name.substr(root_.size()), member.size)});
            }
        }
    }

    // "dimension s77": "2 to 1024".
    void describe_dimensions(const Json& program, Model& model) const {
        for (const auto& [symbol, range] : place_.object(program, "range_constraints").items()) {
            const auto& least = place_.member(range, "min_val");
            const auto& most = place_.member(range, "max_val");
            auto text = fmt::format("from {}", least.is_null() ? "-∞" : dump_json(least));
            if (!most.is_null()) {
                text += fmt::format(" to {}", dump_json(most));
            }
            model.metadata.push_back({fmt::format("dimension {}", readable(symbol)), text});
        }
    }

    ZipArchive archive_;
    std::shared_ptr<const void> owner_;
    std::string name_;
    JsonPlace place_;
    std::string root_;
    std::string chosen_;
    std::vector<std::string> others_;
};

}  // namespace

bool matches(Bytes head, const std::filesystem::path& path) {
    if (!is_zip(head)) {
        return false;
    }
    try {
        const auto file = MappedFile::open(path);
        const ZipArchive archive(file->bytes(), "the file");
        return archive.root_of("archive_format") || archive.root_of(old_program);
    } catch (const Error&) {
        return path.extension() == ".pt2";
    }
}

Model read_pt2(Bytes bytes, std::shared_ptr<const void> owner, const std::filesystem::path& path) {
    const auto name = path.empty() ? std::string("the model") : path.string();
    auto model = Reader(bytes, std::move(owner), name).read();
    model.format = "pt2";
    model.dialect = "aten";
    model.path = path;
    model.file_bytes = bytes.size();
    model.source.bytes = bytes;
    return model;
}

Model read_file(const std::filesystem::path& path) {
    const auto mapped = MappedFile::open(path);
    auto model = read_pt2(mapped->bytes(), mapped, path);
    model.image = mapped;
    return model;
}

}  // namespace trocar::pt2
