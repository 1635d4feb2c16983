#include "formats/torchscript/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/pickle.h"
#include "formats/torchscript/syntax.h"
#include "trocar/error.h"
#include "util/aten_types.h"
#include "util/mapped_file.h"
#include "util/text.h"
#include "util/zip_archive.h"

namespace trocar::torchscript {

namespace {

constexpr std::size_t most_code = std::size_t{64} << 20;

class Reader {
public:
    Reader(Bytes bytes, std::shared_ptr<const void> owner, const std::string& name)
        : archive_(bytes, fmt::format("'{}'", name)), owner_(std::move(owner)), name_(name) {}

    Model read() {
        check_layout();
        read_code();
        const auto data = pickle("data.pkl");
        const auto constants =
            archive_.find(root_ + "constants.pkl") != nullptr ? pickle("constants.pkl") : nullptr;
        const Contents contents{
            .where = fmt::format("'{}'", name_),
            .code = code_,
            .data = *data,
            .constants = constants.get(),
            .load = [&](const PickledTensor& tensor, const std::string& folder,
                        const std::string& name) { return load(tensor, folder, name); }};
        const auto method = choose_method(*data);
        Model model;
        model.graph = Interpreter(contents).read(method);
        infer_aten_types(model.graph);
        model.graph.name = method;
        describe(*data, method, model);
        return model;
    }

private:
    void check_layout() {
        const auto root = archive_.root_of("data.pkl");
        if (!root) {
            throw Error(Fault::input,
                        fmt::format("'{}' is no archive that torch.jit.save wrote", name_));
        }
        root_ = *root;
        const auto folder = root_ + "code/";
        if (std::none_of(archive_.members().begin(), archive_.members().end(),
                         [&](const ZipArchive::Member& member) {
                             return member.name.starts_with(folder);
                         })) {
            throw Error(
                Fault::unsupported,
                fmt::format("'{}' is a pickle of torch.save, with tensors and no program", name_),
                "load it with torch, and write the model with torch.export.save or "
                "torch.jit.save");
        }
        if (archive_.text(root_ + "byteorder") == "big") {
            throw Error(
                Fault::unsupported,
                fmt::format("'{}' was written on a machine of the other byte order", name_));
        }
    }

    // "code/__torch__/net/block.py" defines what "__torch__.net.block" begins.
    void read_code() {
        const auto folder = root_ + "code/";
        std::size_t size = 0;
        for (const auto& member : archive_.members()) {
            const std::string_view name = member.name;
            if (!name.starts_with(folder) || !name.ends_with(".py")) {
                continue;
            }
            size += member.size;
            if (size > most_code) {
                throw Error(Fault::unsupported,
                            fmt::format("the code of '{}' is too large to be read", name_));
            }
            const auto file = name.substr(root_.size());
            auto module = std::string(name.substr(folder.size(), name.size() - folder.size() - 3));
            std::replace(module.begin(), module.end(), '/', '.');
            parse_code(archive_.text(name), module, std::string(file),
                       fmt::format("'{}': {}", name_, file), code_);
        }
    }

    std::unique_ptr<Pickle> pickle(const std::string& file) const {
        const auto* member = archive_.find(root_ + file);
        const auto view = ZipArchive::view(*member);
        const auto where = fmt::format("'{}': {}", name_, file);
        return view ? std::make_unique<Pickle>(*view, where)
                    : std::make_unique<Pickle>(archive_.unpack(*member), where);
    }

    StridedConstant load(const PickledTensor& tensor, const std::string& folder,
                         const std::string& name) const {
        const auto file = fmt::format("{}/{}", folder, tensor.storage);
        const auto* member = archive_.find(root_ + file);
        const auto fail = [&](const std::string& what) {
            throw Error(Fault::input, fmt::format("'{}': '{}': {}", name_, name, what));
        };
        if (member == nullptr) {
            fail(fmt::format("its file '{}' is missing", file));
        }
        Storage storage;
        if (const auto view = ZipArchive::view(*member)) {
            storage = {*view, owner_};
        } else {
            auto& unpacked = unpacked_[file];
            if (!unpacked.owner) {
                auto bytes =
                    std::make_shared<const std::vector<std::byte>>(archive_.unpack(*member));
                unpacked = {*bytes, bytes};
            }
            storage = unpacked;
        }
        return strided_constant(tensor.where, storage, file, fail, [&]() -> Constant {
            fail("it has no elements in the file");
            return {};
        });
    }

    const Class* root_class(const Pickle& data) const {
        const auto found = code_.classes.find(data.root().text);
        return found == code_.classes.end() ? nullptr : &found->second;
    }

    // "forward"; else the only one there is.
    std::string choose_method(const Pickle& data) const {
        const auto* of = root_class(data);
        if (of == nullptr || of->methods.contains("forward") || of->methods.size() != 1) {
            return "forward";
        }
        return of->methods.begin()->first;
    }

    void describe(const Pickle& data, const std::string& method, Model& model) const {
        model.producer = "torch";
        const auto add = [&](std::string key, std::string value) {
            model.metadata.push_back({std::move(key), std::move(value)});
        };
        for (const char* file : {"version", ".data/version"}) {
            auto version = archive_.text(root_ + file);
            version.erase(std::min(version.find('\n'), std::min<std::size_t>(version.size(), 20)));
            if (!version.empty()) {
                add("archive version", version);
                break;
            }
        }
        add("class", data.root().text);
        if (const auto* of = root_class(data)) {
            std::vector<std::string> others;
            for (const auto& [name, function] : of->methods) {
                if (name != method) {
                    others.push_back(name);
                }
            }
            if (!others.empty()) {
                add("other methods", fmt::format("{}", join(others, ", ")));
            }
        }
        for (const auto& member : archive_.members()) {
            if (member.name.starts_with(root_ + "extra/")) {
                add("extra file",
                    fmt::format("'{}', {} bytes", member.name.substr(root_.size()), member.size));
            }
        }
    }

    ZipArchive archive_;
    std::shared_ptr<const void> owner_;
    std::string name_;
    std::string root_;
    Code code_;
    mutable std::map<std::string, Storage> unpacked_;
};

}  // namespace

bool matches(Bytes head, const std::filesystem::path& path) {
    if (!is_zip(head)) {
        return false;
    }
    try {
        const auto file = MappedFile::open(path);
        const ZipArchive archive(file->bytes(), "the file");
        return archive.root_of("data.pkl").has_value();
    } catch (const Error&) {
        const auto suffix = path.extension();
        return suffix == ".pt" || suffix == ".jit" || suffix == ".ptl";
    }
}

Model read_torchscript(Bytes bytes, std::shared_ptr<const void> owner,
                       const std::filesystem::path& path) {
    const auto name = path.empty() ? std::string("the model") : path.string();
    auto model = Reader(bytes, std::move(owner), name).read();
    model.format = "torchscript";
    model.dialect = "aten";
    model.path = path;
    model.file_bytes = bytes.size();
    model.source.bytes = bytes;
    return model;
}

Model read_file(const std::filesystem::path& path) {
    const auto mapped = MappedFile::open(path);
    auto model = read_torchscript(mapped->bytes(), mapped, path);
    model.image = mapped;
    return model;
}

}  // namespace trocar::torchscript
