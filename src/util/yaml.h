#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace trocar::yaml {

// A value of a YAML file and where it stands. What is wrong with it is said with file, line and
// key.
class Field {
public:
    Field(const YAML::Node& node, std::string file, std::string key)
        : node_(node), file_(std::move(file)), key_(std::move(key)) {}

    [[noreturn]] void fail(const std::string& sentence, const std::string& hint = {}) const;

    const std::string& key() const { return key_; }  // "faults[2].bits"; empty: the whole file
    bool is_map() const { return node_.IsMap(); }
    bool is_list() const { return node_.IsSequence(); }
    bool is_scalar() const { return node_.IsScalar(); }

    std::string text() const;
    bool truth() const;
    double number(double least, double most) const;
    std::uint64_t natural(std::uint64_t least = 0,
                          std::uint64_t most = std::uint64_t{1} << 62) const;
    std::uint64_t bytes() const;  // "512 MiB", "2 GB", a number
    double share() const;         // "5 %", "0.05"
    // The place of the text among these; what may have been meant where it is none of them.
    std::size_t choice(std::initializer_list<const char*> choices) const;

    std::vector<Field> items() const;        // of a list; a single value is a list of one
    std::vector<std::string> texts() const;  // the same as texts
    // Of a map whose keys are free: each once.
    std::vector<std::pair<std::string, Field>> entries() const;
    // Calls what belongs to each key that is there. Refuses other keys and repeated ones.
    using Keys = std::vector<std::pair<const char*, std::function<void(const Field&)>>>;
    void read(const Keys& keys) const;

    // Runs `parse` and says where it failed.
    template <class F>
    auto parsed(F parse) const;

private:
    Field child(const YAML::Node& node, const std::string& key) const;
    std::string where() const;
    [[noreturn]] void refuse(const char* wanted) const;
    YAML::Node node_;
    std::string file_;
    std::string key_;
};

Field parse(const std::string& text, const std::string& file);

}  // namespace trocar::yaml

#include "trocar/error.h"

template <class F>
auto trocar::yaml::Field::parsed(F parse) const {
    try {
        return parse();
    } catch (const Error& e) {
        fail(e.what(), e.hint());
    }
}
