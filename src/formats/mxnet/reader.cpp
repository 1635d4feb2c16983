#include "formats/mxnet/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/mxnet/symbol.h"
#include "util/files.h"
#include "util/mapped_file.h"

namespace trocar::mxnet {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view symbol_end = "-symbol.json";

std::string_view text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "NAME" of NAME-symbol.json, NAME.json, NAME-0007.params, NAME.params.
std::string stem_of(const fs::path& path) {
    auto name = path.filename().string();
    if (name.ends_with(symbol_end)) {
        return name.substr(0, name.size() - symbol_end.size());
    }
    auto stem = path.stem().string();
    constexpr std::size_t digits = 4;
    if (path.extension() == ".params" && stem.size() > digits + 1 &&
        stem[stem.size() - digits - 1] == '-' &&
        std::all_of(stem.end() - digits, stem.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        stem.resize(stem.size() - digits - 1);
    }
    return stem;
}

// The arrays beside a symbol: of several that differ in their number the last.
fs::path arrays_beside(const fs::path& symbol) {
    const auto stem = stem_of(symbol);
    fs::path best;
    std::error_code failure;
    const auto folder = symbol.parent_path();
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, failure), end;
         !failure && entry != end; entry.increment(failure)) {
        const auto path = folder / entry->path().filename();
        if (path.extension() == ".params" && stem_of(path) == stem && best < path) {
            best = path;
        }
    }
    return best;
}

fs::path symbol_beside(const fs::path& arrays) {
    const auto stem = stem_of(arrays);
    for (const auto& name : {stem + std::string(symbol_end), stem + ".json"}) {
        std::error_code failure;
        if (fs::is_regular_file(arrays.parent_path() / name, failure)) {
            return arrays.parent_path() / name;
        }
    }
    return {};
}

bool looks_like_symbol(std::string_view text) {
    return text.find("\"nodes\"") != std::string_view::npos &&
           text.find("\"op\"") != std::string_view::npos;
}

void describe(const JsonPlace& place, const Json& symbol, Model& model) {
    model.producer = "mxnet";
    for (const auto& [key, value] : place.object(symbol, "attrs").items()) {
        // "mxnet_version": ["int", 10500] is 1.5.0.
        const bool typed = value.is_array() && value.size() == 2;
        if (key == "mxnet_version" && typed && value[1].is_whole()) {
            const auto number = place.integer(value[1], "the version of MXNet");
            model.producer_version =
                fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
        } else {
            model.metadata.push_back({key, dump_json(typed ? value[1] : value)});
        }
    }
}

Arrays sort_arrays(std::vector<NamedArray> list, const std::string& where, Model& model) {
    Arrays arrays;
    for (auto& array : list) {
        std::string name = array.name;
        const char* kind = "parameter";
        if (name.starts_with("arg:")) {
            name.erase(0, 4);
        } else if (name.starts_with("aux:")) {
            name.erase(0, 4);
            kind = "buffer";
        }
        if (array.is_none) {
            model.metadata.push_back({"array without elements", array.name});
        } else if (!arrays.by_name.emplace(name, Arrays::Entry{std::move(array.constant), kind})
                        .second) {
            throw Error(Fault::input, fmt::format("{} holds '{}' twice", where, array.name));
        }
    }
    return arrays;
}

}  // namespace

Model read_mxnet(std::string_view symbol, Bytes arrays, const std::shared_ptr<const void>& owner,
                 const std::string& where, const std::string& arrays_where) {
    Model model;
    const JsonPlace place(where);
    const auto parsed = Json::parse(symbol);
    if (!parsed || !parsed->is_object()) {
        place.fail("it is no JSON object");
    }
    const auto& document = *parsed;
    if (!place.member(document, "nodes").is_array()) {
        place.fail("it holds no symbol: 'nodes' is missing");
    }
    Arrays sorted;
    if (!arrays.empty()) {
        sorted = sort_arrays(read_arrays(arrays, owner, arrays_where), arrays_where, model);
    }
    model.graph = read_symbol(place, document, sorted);
    describe(place, document, model);
    for (const auto& [name, entry] : sorted.by_name) {
        if (!model.graph.find_tensor(name)) {
            model.metadata.push_back({"unused array", name});
        }
    }
    model.format = "mxnet";
    model.dialect = "mxnet";
    return model;
}

bool matches(Bytes head, const std::filesystem::path& path) {
    if (begins_arrays(head)) {
        return !symbol_beside(path).empty() || path.extension() == ".params";
    }
    const auto text = text_of(head);
    const auto first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '{' && looks_like_symbol(text);
}

Model read_file(const std::filesystem::path& path) {
    const auto given = MappedFile::open(path);
    auto symbol_path = path;
    auto arrays_path = path;
    if (begins_arrays(given->bytes())) {
        symbol_path = symbol_beside(path);
        if (symbol_path.empty()) {
            throw Error(
                Fault::input,
                fmt::format("'{}' holds arrays, and there is no symbol beside it", path.string()),
                fmt::format("put '{}{}' into its folder", stem_of(path), symbol_end));
        }
    } else {
        arrays_path = arrays_beside(path);
    }
    const auto symbol = MappedFile::open(symbol_path);
    const auto arrays = arrays_path.empty() ? nullptr : MappedFile::open(arrays_path);
    auto model = read_mxnet(text_of(symbol->bytes()), arrays ? arrays->bytes() : Bytes(), arrays,
                            fmt::format("'{}'", symbol_path.string()),
                            fmt::format("'{}'", arrays_path.string()));
    model.graph.name = stem_of(symbol_path);
    model.path = symbol_path;
    model.file_bytes = symbol->bytes().size();
    if (arrays) {
        model.external_bytes = arrays->bytes().size();
        model.metadata.push_back({"arrays", arrays_path.filename().string()});
    }
    return model;
}

}  // namespace trocar::mxnet
