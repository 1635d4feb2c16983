#include <cmath>

#include "base/json.h"
#include "tools/dump/index.h"
#include "trocar/version.h"

namespace trocar::dump {

namespace {

// One line; names of tensors need not be valid UTF-8.
std::string line(const Json& json) {
    return json.dump() + "\n";
}

Json statistics_json(const Statistics& s, bool histogram) {
    auto json = Json::object(Json::Order::given);
    json["count"] = s.count;
    json["nan"] = s.nans;
    json["positive_inf"] = s.positive_infinities;
    json["negative_inf"] = s.negative_infinities;
    json["zeros"] = s.zeros;
    json["denormals"] = s.denormals;
    if (s.finite() == 0) {
        return json;
    }
    json["min"] = s.min;
    json["max"] = s.max;
    json["max_abs"] = s.max_abs;
    json["mean"] = s.mean;
    json["std"] = s.std;
    json["rms"] = s.rms;
    json["l1"] = s.l1;
    json["l2"] = s.l2;
    if (s.distribution) {
        json["p1"] = s.distribution->p1;
        json["p50"] = s.distribution->p50;
        json["p99"] = s.distribution->p99;
        json["entropy_bits"] = s.distribution->entropy_bits;
        json["spread_of"] = s.distribution->numbers;
        if (histogram) {
            json["histogram"] = Json::array_of(s.distribution->histogram);
        }
    }
    return json;
}

void put_value(Json& json, const DumpRecord& record, bool histogram) {
    if (record.kind != "tensor") {
        json["kind"] = record.kind;
        return;
    }
    json["dtype"] = name(record.dtype);
    json["shape"] = record.shape;
    json["bytes"] = record.bytes;
    if (!record.hash.empty()) {
        json["hash"] = record.hash;
    }
    if (record.statistics) {
        json["statistics"] = statistics_json(*record.statistics, histogram);
    }
}

}  // namespace

const char* hash_name(DumpOptions::Hash hash) {
    switch (hash) {
        case DumpOptions::Hash::xxh64:
            return "xxh64";
        case DumpOptions::Hash::sha256:
            return "sha256";
        default:
            return "none";
    }
}

std::string head_line(const DumpOptions& options) {
    auto json = Json::object(Json::Order::given);
    json["schema"] = schema;
    json["trocar"] = version();
    json["hash"] = hash_name(options.hash);
    auto& about = json["about"] = Json::object(Json::Order::given);
    for (const auto& [key, value] : options.about) {
        about[key] = value;
    }
    return line(json);
}

std::string set_line(std::uint64_t set, std::span<const DumpInput> inputs) {
    auto json = Json::object(Json::Order::given);
    json["set"] = set;
    auto& list = json["inputs"] = Json::array();
    for (const auto& input : inputs) {
        list.push_back(Json::object(Json::Order::given, {{"name", input.name},
                                                         {"type", input.type},
                                                         {"from", input.origin},
                                                         {"hash", input.hash}}));
    }
    return line(json);
}

std::string record_line(const DumpRecord& record, bool histogram) {
    auto json = Json::object(Json::Order::given);
    json["tensor"] = record.tensor;
    json["set"] = record.set;
    json["op"] = record.op;
    json["type"] = record.type;
    json["name"] = record.name;
    json["slot"] = record.slot;
    if (!record.module.empty()) {
        json["module"] = record.module;
    }
    if (!record.scope.empty()) {
        json["scope"] = record.scope;
    }
    if (!record.sources.empty()) {
        json["sources"] = record.sources;
    }
    if (!record.source_tensor.empty()) {
        json["source_tensor"] = record.source_tensor;
    }
    if (!record.iterations.empty()) {
        json["iterations"] = record.iterations;
    }
    put_value(json, record, histogram);
    if (!record.file.empty()) {
        json["file"] = record.file;
    }
    if (record.offset) {
        json["offset"] = *record.offset;
    }
    return line(json);
}

std::string end_line(std::string_view how, std::uint64_t records) {
    auto json = Json::object(Json::Order::given);
    json["end"] = how;
    json["records"] = records;
    return line(json);
}

}  // namespace trocar::dump
