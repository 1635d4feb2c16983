#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trocar/value.h"

namespace trocar {

// What is known about the sizes behind the symbols in a model's declared types.
class Dimensions {
public:
    // Without a size of its own, a dimension of unknown size gets `otherwise`; absent: it stays
    // unknown.
    explicit Dimensions(std::optional<std::int64_t> otherwise) : otherwise_(otherwise) {}

    // A size that holds for every value.
    void choose(const std::string& symbol, std::int64_t size) { chosen_[symbol] = size; }
    // The sizes that the symbols of `type` have in a shape; the first one seen stays.
    void learn(const Shape& shape, const Type& type);

    // Does it fit the declared type? Symbols must have the size chosen for them; learned ones may
    // differ.
    bool fits(const Shape& shape, const Type& type) const;
    bool fits(const Value& value, const Type& type) const;

    // The declared shape with the sizes that are known. What is not known goes to `unknown`
    // ("'batch'", "dimension 2", "the rank"); nothing when that leaves no shape.
    std::optional<Shape> concrete(const Type& type, std::vector<std::string>& unknown) const;

    // "f32[batch,3] with batch=4": the type with what was chosen for it.
    std::string text(const Type& type) const;
    // How to give the sizes that are missing: "batch=1", "length=1", or "x=1,3" where they have no
    // name.
    std::vector<std::string> missing(const std::string& input, const Type& type) const;

    // The dimensions of a tensor, or of what a sequence or an optional holds; empty: unknown.
    static std::vector<Dim> of(const Type& type);

private:
    std::optional<std::int64_t> size(const Dim& dim) const;

    std::optional<std::int64_t> otherwise_;
    std::unordered_map<std::string, std::int64_t> chosen_;
    std::unordered_map<std::string, std::int64_t> learned_;
};

}  // namespace trocar
