#include "util/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "util/display.h"
#include "util/text.h"

namespace trocar::yaml {

namespace {

bool read_number(std::string_view text, double& value) {
    const auto* begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const auto [stop, failure] = std::from_chars(begin, text.data() + text.size(), value);
    return failure == std::errc() && stop == text.data() + text.size() && std::isfinite(value);
}

std::string shown(const std::string& text) {
    return ellipsis(printable(text), 60);
}

}  // namespace

std::string Field::where() const {
    const auto mark = node_.Mark();
    return mark.is_null() ? file_ : fmt::format("{}:{}", file_, mark.line + 1);
}

void Field::fail(const std::string& sentence, const std::string& hint) const {
    throw Error(Fault::input,
                key_.empty() ? fmt::format("{}: {}", where(), sentence)
                             : fmt::format("{}: {}: {}", where(), printable(key_), sentence),
                hint);
}

void Field::refuse(const char* wanted) const {
    fail(fmt::format("expected {}, not {}", wanted,
                     node_.IsScalar()     ? fmt::format("'{}'", shown(node_.Scalar()))
                     : node_.IsSequence() ? "a list"
                     : node_.IsMap()      ? "keys and values"
                                          : "nothing"));
}

Field Field::child(const YAML::Node& node, const std::string& key) const {
    return {node, file_, key_.empty() ? key : key.starts_with('[') ? key_ + key : key_ + "." + key};
}

std::string Field::text() const {
    if (!node_.IsScalar()) {
        refuse("a text");
    }
    return node_.Scalar();
}

bool Field::truth() const {
    const auto text = node_.IsScalar() ? node_.Scalar() : std::string();
    if (text == "true" || text == "yes" || text == "on") {
        return true;
    }
    if (text != "false" && text != "no" && text != "off") {
        refuse("true or false");
    }
    return false;
}

double Field::number(double least, double most) const {
    double value = 0;
    if (!node_.IsScalar() || !read_number(node_.Scalar(), value)) {
        refuse("a number");
    }
    if (value < least || value > most) {
        fail(fmt::format("{} lies outside of {:g} to {:g}", node_.Scalar(), least, most));
    }
    return value;
}

std::uint64_t Field::natural(std::uint64_t least, std::uint64_t most) const {
    const auto text = node_.IsScalar() ? node_.Scalar() : std::string();
    std::uint64_t value = 0;
    const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || stop != text.data() + text.size() ||
        (failure != std::errc() && failure != std::errc::result_out_of_range)) {
        refuse("a whole number");
    }
    if (failure != std::errc() || value < least || value > most) {
        fail(fmt::format("{} lies outside of {} to {}", shown(text), least, most));
    }
    return value;
}

std::uint64_t Field::bytes() const {
    const auto text = node_.IsScalar() ? node_.Scalar() : std::string();
    const auto end = text.find_first_not_of("0123456789.");
    const auto unit = end == std::string::npos ? "" : std::string(trim(text.substr(end)));
    static const std::vector<std::pair<std::string, double>> units{
        {"", 1},      {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
        {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    const auto at = std::find_if(units.begin(), units.end(),
                                 [&](const auto& known) { return known.first == unit; });
    double value = 0;
    if (at == units.end() || !read_number(text.substr(0, end), value) ||
        value * at->second >= 0x1p62) {
        refuse("a number of bytes, such as 512 MiB");
    }
    return static_cast<std::uint64_t>(value * at->second);
}

double Field::share() const {
    const auto share = parse_share(node_.IsScalar() ? node_.Scalar() : std::string());
    if (!share) {
        refuse("a share, such as 0.05 or 5 %");
    }
    const double value = *share;
    if (value < 0 || value > 1) {
        fail(fmt::format("{} lies outside of 0 to 1", shown(node_.Scalar())),
             "percentages are written with their sign: 5 %");
    }
    return value;
}

std::size_t Field::choice(std::initializer_list<const char*> choices) const {
    const auto text = node_.IsScalar() ? node_.Scalar() : std::string();
    const std::vector<std::string> names(choices.begin(), choices.end());
    const auto at = std::find(names.begin(), names.end(), text);
    if (at != names.end()) {
        return static_cast<std::size_t>(at - names.begin());
    }
    const auto guess = did_you_mean(text, names);
    fail(node_.IsScalar() ? fmt::format("cannot be '{}'", shown(text)) : "expected one word",
         fmt::format("{}{}one of: {}", guess, guess.empty() ? "" : " ", join(names, ", ")));
}

std::vector<Field> Field::items() const {
    if (!node_.IsSequence()) {
        if (node_.IsNull()) {
            refuse("a list");
        }
        return {*this};
    }
    std::vector<Field> all;
    for (const auto& item : node_) {
        all.push_back(child(item, fmt::format("[{}]", all.size())));
    }
    return all;
}

std::vector<std::string> Field::texts() const {
    std::vector<std::string> all;
    for (const auto& item : items()) {
        all.push_back(item.text());
    }
    return all;
}

std::vector<std::pair<std::string, Field>> Field::entries() const {
    if (!node_.IsMap()) {
        refuse("keys and values");
    }
    std::vector<std::pair<std::string, Field>> all;
    std::set<std::string> seen;
    for (const auto& entry : node_) {
        const auto name = entry.first.IsScalar() ? entry.first.Scalar() : std::string("?");
        if (!seen.insert(name).second) {
            Field(entry.first, file_, key_).fail(fmt::format("the key '{}' is there twice", name));
        }
        all.emplace_back(name, child(entry.second, name));
    }
    return all;
}

void Field::read(const Keys& keys) const {
    if (!node_.IsMap()) {
        refuse("keys and values");
    }
    std::set<std::string> seen;
    for (const auto& entry : node_) {
        const auto name = entry.first.IsScalar() ? entry.first.Scalar() : std::string("?");
        const Field field(entry.first, file_, key_);
        const auto at = std::find_if(keys.begin(), keys.end(),
                                     [&](const auto& known) { return known.first == name; });
        if (at == keys.end()) {
            std::vector<std::string> names;
            for (const auto& known : keys) {
                names.emplace_back(known.first);
            }
            const auto guess = did_you_mean(name, names);
            field.fail(fmt::format("there is no key '{}' here", shown(name)),
                       fmt::format("{}{}known are: {}", guess, guess.empty() ? "" : " ",
                                   join(names, ", ")));
        }
        if (!seen.insert(name).second) {
            field.fail(fmt::format("the key '{}' is there twice", name));
        }
        const auto value = child(entry.second, name);
        if (entry.second.IsNull()) {
            field.fail(fmt::format("the key '{}' has no value", name));
        }
        at->second(value);
    }
}

Field parse(const std::string& text, const std::string& file) {
    try {
        auto node = YAML::Load(text);
        return {node, file, ""};
    } catch (const YAML::Exception& e) {
        throw Error(Fault::input,
                    e.mark.is_null()
                        ? fmt::format("{}: this is not YAML: {}", file, e.msg)
                        : fmt::format("{}:{}: this is not YAML: {}", file, e.mark.line + 1, e.msg));
    }
}

}  // namespace trocar::yaml
