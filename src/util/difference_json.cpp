#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "trocar/difference.h"
#include "trocar/error.h"

namespace trocar {

namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw Error(Fault::input, fmt::format("the JSON of a difference {}", what));
}

// The fields that a Difference has, each with the name it has there. `Self` is Difference or const.
template <class Self, class Work>
void each_count(Self& self, const Work& work) {
    work("count", self.count);
    work("finite", self.finite);
    work("mismatches", self.mismatches);
    work("nan_mismatches", self.nan_mismatches);
    work("infinity_mismatches", self.infinity_mismatches);
    work("worst", self.worst);
    work("top_k", self.top_k);
}

template <class Self, class Work>
void each_optional(Self& self, const Work& work) {
    work("first_nan", self.first_nan);
    work("first_infinity", self.first_infinity);
    work("max_ulp", self.max_ulp);
    work("p99_ulp", self.p99_ulp);
}

template <class Self, class Work>
void each_number(Self& self, const Work& work) {
    work("max_abs", self.max_abs);
    work("mean_abs", self.mean_abs);
    work("max_rel", self.max_rel);
    work("mean_rel", self.mean_rel);
    work("mse", self.mse);
    work("rmse", self.rmse);
    work("normalized_l2", self.normalized_l2);
    work("sqnr_db", self.sqnr_db);
    work("psnr_db", self.psnr_db);
    work("cosine", self.cosine);
    work("worst_a", self.worst_a);
    work("worst_b", self.worst_b);
    work("p50_abs", self.p50_abs);
    work("p99_abs", self.p99_abs);
    work("argmax_agreement", self.argmax_agreement);
    work("top_overlap", self.top_overlap);
}

Json number_json(double number) {
    if (std::isnan(number)) {
        return "NaN";
    }
    if (std::isinf(number)) {
        return number > 0 ? "Infinity" : "-Infinity";
    }
    return number;
}

double number_of(const Json& json, const char* key) {
    if (json == "NaN") {
        return Difference::none;
    }
    if (json == "Infinity" || json == "-Infinity") {
        const auto infinity = std::numeric_limits<double>::infinity();
        return json == "Infinity" ? infinity : -infinity;
    }
    if (!json.is_number()) {
        refuse(fmt::format("has no number as '{}'", key));
    }
    return json.number();
}

std::uint64_t count_of(const Json& json, const char* key) {
    if (!json.is_natural()) {
        refuse(fmt::format("has no count as '{}'", key));
    }
    return json.uint64();
}

const Json& field(const Json& json, const char* key) {
    const auto* found = json.find(key);
    if (found == nullptr) {
        refuse(fmt::format("has no '{}'", key));
    }
    return *found;
}

// A field that is a list, of pairs.
const Json& pairs_of(const Json& json, const char* key) {
    const auto& list = field(json, key);
    const auto is_pair = [](const Json& item) { return item.is_array() && item.size() == 2; };
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_pair)) {
        refuse(fmt::format("has no list of pairs as '{}'", key));
    }
    return list;
}

void read_lists(const Json& json, Difference& difference) {
    for (const auto& pair : pairs_of(json, "histogram")) {
        const auto bin = count_of(pair[0], "histogram");
        if (bin >= difference.histogram.size()) {
            refuse(fmt::format("has a bin {} in its histogram", bin));
        }
        difference.histogram[bin] = count_of(pair[1], "histogram");
    }
    for (const auto& pair : pairs_of(json, "corners")) {
        const auto& corner = difference.corners.emplace_back(
            Corner{number_of(pair[0], "corners"), number_of(pair[1], "corners")});
        if (!(corner.magnitude >= 0) || std::isinf(corner.magnitude) || !(corner.off > 0)) {
            refuse("has a corner that is none");
        }
    }
}

bool same(double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y));
}

}  // namespace

std::string to_json(const Difference& difference) {
    auto json = Json::object(Json::Order::given);
    json["same_bits"] = difference.same_bits;
    each_count(difference, [&](const char* key, const auto& count) { json[key] = count; });
    each_optional(difference, [&](const char* key, const auto& count) {
        if (count) {
            json[key] = *count;
        }
    });
    each_number(difference,
                [&](const char* key, const double& number) { json[key] = number_json(number); });
    if (const auto& channel = difference.worst_channel) {
        json["worst_channel"] =
            Json::object(Json::Order::given, {{"axis", channel->axis},
                                              {"index", channel->index},
                                              {"max_abs", number_json(channel->max_abs)},
                                              {"share", number_json(channel->share)}});
    }
    auto& histogram = json["histogram"] = Json::array();
    for (std::size_t bin = 0; bin < difference.histogram.size(); ++bin) {
        if (difference.histogram[bin] > 0) {
            histogram.push_back(Json::array({bin, difference.histogram[bin]}));
        }
    }
    auto& corners = json["corners"] = Json::array();
    for (const auto& corner : difference.corners) {
        corners.push_back(Json::array({number_json(corner.magnitude), number_json(corner.off)}));
    }
    return json.dump();
}

Difference difference_from_json(std::string_view text) {
    const auto parsed = Json::parse(text);
    if (!parsed || !parsed->is_object()) {
        refuse("is no object");
    }
    const auto& json = *parsed;
    Difference difference;
    const auto& bits = field(json, "same_bits");
    if (!bits.is_boolean()) {
        refuse("has no yes or no as 'same_bits'");
    }
    difference.same_bits = bits.boolean();
    each_count(difference,
               [&](const char* key, auto& count) { count = count_of(field(json, key), key); });
    each_optional(difference, [&](const char* key, auto& count) {
        if (const auto* found = json.find(key)) {
            count = count_of(*found, key);
        }
    });
    each_number(difference, [&](const char* key, double& number) {
        number = number_of(field(json, key), key);
    });
    if (const auto* found = json.find("worst_channel")) {
        if (!found->is_object()) {
            refuse("has no object as 'worst_channel'");
        }
        difference.worst_channel = {.axis = count_of(field(*found, "axis"), "axis"),
                                    .index = count_of(field(*found, "index"), "index"),
                                    .max_abs = number_of(field(*found, "max_abs"), "max_abs"),
                                    .share = number_of(field(*found, "share"), "share")};
    }
    read_lists(json, difference);
    return difference;
}

bool ChannelDifference::operator==(const ChannelDifference& other) const {
    return axis == other.axis && index == other.index && same(max_abs, other.max_abs) &&
           same(share, other.share);
}

bool Difference::operator==(const Difference& other) const {
    return to_json(*this) == to_json(other);
}

}  // namespace trocar
