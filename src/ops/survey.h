#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trocar/deployed.h"
#include "trocar/ops.h"
#include "trocar/parts.h"

namespace trocar::ops {

// A distinct operator of a model, with what it takes to run it.
struct Found {
    ModelOp op;
    std::size_t part = 0;         // where it first occurs, in Survey::parts
    std::vector<Value> inputs;    // as they occurred there
    std::size_t producer = none;  // the part that made its largest input
    std::vector<Value> producer_inputs;
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
};

// The distinct operators of a model, seen in a run op by op.
class Survey {
public:
    // Throws Error(unsupported) where the engine cannot give the unit.
    // Parts in `skip` are not run, for the reason given there; `doing` is told of each part before
    // it is.
    Survey(const Model& model, const std::shared_ptr<Engine>& engine,
           const std::vector<NamedValue>& inputs, View unit,
           const std::map<std::size_t, std::string>& skip = {},
           const std::function<void(std::size_t)>& doing = {});
    Survey(const Survey&) = delete;
    Survey& operator=(const Survey&) = delete;

    const Chain& chain() const { return *chain_; }
    const std::vector<Part>& parts() const { return parts_; }
    const std::vector<Found>& found() const { return found_; }
    // Ready to run, with its inputs in the program's order.
    struct Ready {
        std::unique_ptr<Program> program;
        std::vector<Value> inputs;
    };
    Ready compile(std::size_t part, const std::vector<Value>& inputs) const;
    // For a model that was made of a part: inputs in the order of its program.
    Ready compile(const Model& model, std::size_t part, const std::vector<Value>& inputs) const;
    CompileOptions how() const;
    // As many bytes as a run of the model touches, though no more than displace all that caches
    // hold. Made when it is first asked for.
    const std::vector<std::uint64_t>& memory() const;

private:
    void walk(const std::vector<NamedValue>& inputs, const std::map<std::size_t, std::string>& skip,
              const std::function<void(std::size_t)>& doing);

    std::shared_ptr<Engine> engine_;
    View unit_;
    Deployed deployed_;  // of View::deployed
    std::unique_ptr<Chain> chain_;
    std::vector<Part> parts_;
    std::vector<Found> found_;
    mutable std::vector<std::uint64_t> memory_;
};

}  // namespace trocar::ops
