#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "trocar/graph.h"

namespace trocar::pt2 {

// Follows ops that write in place through a program, so that a graph of values says the same.
//
// What such an op makes stands in the place of what it wrote to: whoever reads the old name
// afterwards reads the new tensor. That is the whole truth unless somebody reads the same memory
// later through another name, a view; then the op has the attribute "writes", with the name of the
// tensor whose memory it is.
class Writes {
public:
    explicit Writes(const Json& graph);

    // Does an op of this type write to its first argument?
    static bool in_place(const OpSpec& spec);

    // `names` are those by which the program knows a tensor from now on.
    void name(TensorId id, const std::string& name);
    // The outputs of op `number` are in the memory of `viewed`.
    void view(TensorId output, TensorId viewed);
    // Op `number` writes to `written` and makes `made`. The names that now mean `made` go to
    // `renamed`. Returns the tensor whose memory others read later; none: nobody does.
    TensorId write(std::size_t number, TensorId written, TensorId made,
                   std::vector<std::string>& renamed);

private:
    TensorId root(TensorId id) const;

    std::unordered_map<std::string, std::size_t> last_read_;  // names to numbers of ops
    std::map<TensorId, std::vector<std::string>> names_;
    std::map<TensorId, TensorId> roots_;                 // views to what they are views of
    std::map<TensorId, std::vector<TensorId>> sharing_;  // roots to their views
};

// Is the output of this op, or are its outputs, in the memory of its first input?
bool makes_view(const OpSpec& spec);

}  // namespace trocar::pt2
