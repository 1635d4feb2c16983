#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "tools/dump/index.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar {

namespace dump {

namespace {

// The fields of one line. A field that is missing has its default; one of another kind is an error.
class Line {
public:
    Line(const Json& json, const std::string& where) : json_(json), where_(where) {}

    bool has(const char* key) const { return json_.contains(key); }

    template <class T>
    T get(const char* key, T otherwise = {}) const {
        const auto* found = json_.find(key);
        if (found == nullptr || found->is_null()) {
            return otherwise;
        }
        if (!right(*found, otherwise)) {
            refuse(key);
        }
        return value(*found, otherwise);
    }

    Line at(const char* key) const { return {json_.at(key), where_}; }
    const Json& json() const { return json_; }
    [[noreturn]] void refuse(const char* key) const {
        throw Error(Fault::input,
                    fmt::format("{}: '{}' is not what an index has there", where_, key));
    }

private:
    static bool right(const Json& json, const std::string&) { return json.is_string(); }
    static bool right(const Json& json, std::uint64_t) { return json.is_natural(); }
    static bool right(const Json& json, double) { return json.is_number(); }
    static bool right(const Json& json, const std::vector<std::string>&) {
        return json.is_array() && std::all_of(json.begin(), json.end(),
                                              [](const Json& item) { return item.is_string(); });
    }
    static bool right(const Json& json, const Shape&) {
        return json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& item) {
                   return item.is_natural() && item.uint64() <= INT64_MAX;
               });
    }
    static std::string value(const Json& json, const std::string&) { return json.string(); }
    static std::uint64_t value(const Json& json, std::uint64_t) { return json.uint64(); }
    static double value(const Json& json, double) { return json.number(); }
    static std::vector<std::string> value(const Json& json, const std::vector<std::string>&) {
        return json.strings();
    }
    static Shape value(const Json& json, const Shape&) { return json.int64s(); }
    const Json& json_;
    const std::string& where_;
};

Statistics read_statistics(const Line& line) {
    Statistics s;
    s.count = line.get<std::uint64_t>("count");
    s.nans = line.get<std::uint64_t>("nan");
    s.positive_infinities = line.get<std::uint64_t>("positive_inf");
    s.negative_infinities = line.get<std::uint64_t>("negative_inf");
    s.zeros = line.get<std::uint64_t>("zeros");
    s.denormals = line.get<std::uint64_t>("denormals");
    const auto number = [&](const char* key) { return line.get<double>(key, Statistics::none); };
    s.min = number("min");
    s.max = number("max");
    s.max_abs = number("max_abs");
    s.mean = number("mean");
    s.std = number("std");
    s.rms = number("rms");
    s.l1 = number("l1");
    s.l2 = number("l2");
    if (line.has("p50")) {
        Distribution d;
        d.p1 = number("p1");
        d.p50 = number("p50");
        d.p99 = number("p99");
        d.entropy_bits = number("entropy_bits");
        d.numbers = line.get<std::uint64_t>("spread_of");
        s.distribution = d;
    }
    return s;
}

DumpRecord read_record(const Line& line, const std::string& where) {
    DumpRecord record;
    record.tensor = line.get<std::string>("tensor");
    record.set = line.get<std::uint64_t>("set");
    record.op = line.get<std::uint64_t>("op");
    record.type = line.get<std::string>("type");
    record.name = line.get<std::string>("name");
    record.slot = line.get<std::uint64_t>("slot");
    record.module = line.get<std::string>("module");
    record.scope = line.get<std::string>("scope");
    record.sources = line.get<std::vector<std::string>>("sources");
    record.source_tensor = line.get<std::string>("source_tensor");
    record.iterations = line.get<Shape>("iterations");
    record.kind = line.get<std::string>("kind", "tensor");
    if (record.kind == "tensor") {
        const auto dtype = parse_dtype(line.get<std::string>("dtype"));
        if (!dtype) {
            throw Error(Fault::input,
                        fmt::format("{}: '{}' is no type", where, line.get<std::string>("dtype")));
        }
        record.dtype = *dtype;
        record.shape = line.get<Shape>("shape");
        record.bytes = line.get<std::uint64_t>("bytes");
    }
    record.hash = line.get<std::string>("hash");
    if (line.has("statistics") && line.json().at("statistics").is_object()) {
        record.statistics = read_statistics(line.at("statistics"));
    }
    record.file = line.get<std::string>("file");
    if (line.has("offset")) {
        record.offset = line.get<std::uint64_t>("offset");
    }
    return record;
}

void read_set(const Line& line, const std::string& where, Dump& dump) {
    std::vector<DumpInput> inputs;
    const auto& list = line.json().at("inputs");
    if (!list.is_array() && !list.is_null()) {
        line.refuse("inputs");
    }
    for (const auto& item : list) {
        const Line input(item, where);
        inputs.push_back({input.get<std::string>("name"), input.get<std::string>("type"),
                          input.get<std::string>("from"), input.get<std::string>("hash")});
    }
    dump.sets.push_back(std::move(inputs));
}

void read_head(const Line& line, const std::string& where, Dump& dump) {
    if (line.get<std::string>("schema") != schema) {
        throw Error(Fault::unsupported,
                    fmt::format("{}: '{}' is not a kind of index that is read", where,
                                line.get<std::string>("schema")),
                    fmt::format("this version reads {}", schema));
    }
    dump.hash_kind = line.get<std::string>("hash");
    if (line.has("about") && line.json().at("about").is_object()) {
        for (const auto& [key, value] : line.json().at("about").items()) {
            dump.about.push_back({key, value.is_string() ? value.string() : ""});
        }
    }
}

}  // namespace

void read_line(std::string_view text, const std::string& where, Dump& dump) {
    const auto json = Json::parse(text);
    if (!json || !json->is_object()) {
        throw Error(Fault::input, fmt::format("{} is not a line of an index", where));
    }
    const Line line(*json, where);
    if (line.has("schema")) {
        read_head(line, where, dump);
    } else if (line.has("inputs")) {
        read_set(line, where, dump);
    } else if (line.has("tensor")) {
        dump.records.push_back(read_record(line, where));
    } else if (line.has("end")) {
        dump.end = line.get<std::string>("end");
    }  // what later versions may add is left out
}

}  // namespace dump

namespace {

std::filesystem::path find_index(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
        return path;
    }
    if (!std::filesystem::exists(path / dump::index_name, ignored)) {
        throw Error(Fault::input,
                    fmt::format("'{}' is no dump: it has no {}", path.string(), dump::index_name),
                    "`trocar dump MODEL` writes one");
    }
    return path / dump::index_name;
}

}  // namespace

Dump read_dump(const std::filesystem::path& path) {
    const auto index = find_index(path);
    const auto file = MappedFile::open(index);
    std::string_view left(reinterpret_cast<const char*>(file->bytes().data()),
                          file->bytes().size());
    Dump dump;
    dump.folder = index.parent_path();
    for (std::size_t number = 1;; ++number) {
        const auto end = left.find('\n');
        if (end == std::string_view::npos) {
            break;
        }
        const auto where = fmt::format("'{}', line {}", index.string(), number);
        if (number == 1 && left.substr(0, end).find("\"schema\"") == std::string_view::npos) {
            throw Error(Fault::input, fmt::format("'{}' is no index of a dump", index.string()));
        }
        dump::read_line(left.substr(0, end), where, dump);
        left.remove_prefix(end + 1);
    }
    if (dump.hash_kind.empty()) {
        throw Error(Fault::input, fmt::format("'{}' is no index of a dump", index.string()));
    }
    return dump;
}

namespace {

// A file inside the dump's folder: an index may come from anywhere.
std::filesystem::path file_of(const Dump& dump, const DumpRecord& record) {
    const std::filesystem::path file(record.file);
    const bool leaves = file.is_absolute() || std::any_of(file.begin(), file.end(),
                                                          [](auto& part) { return part == ".."; });
    if (record.file.empty() || leaves) {
        throw Error(Fault::input,
                    record.file.empty()
                        ? fmt::format("'{}' was not written to the dump '{}'", record.tensor,
                                      dump.folder.string())
                        : fmt::format("the dump '{}' names the file '{}', which is outside of it",
                                      dump.folder.string(), record.file),
                    record.file.empty() ? "`trocar dump --tensors` writes tensors" : "");
    }
    return dump.folder / file;
}

}  // namespace

Value load_tensor(const Dump& dump, const DumpRecord& record) {
    const auto path = file_of(dump, record);
    if (!record.offset) {
        auto values = load_values(path);
        if (values.size() != 1) {
            throw Error(Fault::input, fmt::format("'{}' does not hold one value", path.string()));
        }
        return values.front().value;
    }
    const auto file = MappedFile::open(path);
    const auto size = byte_size(record.dtype, element_count(record.shape));
    const auto all = file->bytes();
    if (*record.offset > all.size() || size > all.size() - *record.offset) {
        throw Error(Fault::input,
                    fmt::format("'{}' ends before '{}' does", path.string(), record.tensor));
    }
    const auto bytes = all.subspan(*record.offset, size);
    const auto item = std::max<std::size_t>(bits(record.dtype) / 8, 1);
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % item == 0;
    return aligned ? Value::borrow(record.dtype, record.shape, bytes, file)
                   : Value::copy(record.dtype, record.shape, bytes);
}

}  // namespace trocar
