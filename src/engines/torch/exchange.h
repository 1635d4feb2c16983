#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engines/torch/bridge/bridge.h"
#include "trocar/value.h"

namespace trocar::libtorch {

using Held = std::shared_ptr<BridgeValue>;

// Values of ours as PyTorch's and back.
class Exchange {
public:
    explicit Exchange(const Bridge& bridge) : bridge_(bridge) {}

    const Bridge& bridge() const { return bridge_; }
    // "PyTorch could not WHAT: …", with what it says. Throws Error(engine).
    [[noreturn]] void fail(const std::string& what) const;

    Held keep(BridgeValue* value) const;
    // A view of the numbers, which must outlive it, or a copy. A sequence is a list of tensors.
    Held give(const Value& value, bool copy) const;
    Held integer(std::int64_t number) const;
    Held real(double number) const;
    Held truth(bool value) const;
    Held nothing() const { return keep(bridge_.nothing()); }
    Held list(const std::vector<Held>& items, bool tensors) const;
    std::vector<Held> items(const Held& list, const std::string& what) const;

    // A list of tensors is a sequence. `lend`: the numbers may stay in PyTorch's memory.
    Value take(const Held& value, const std::string& name, bool lend) const;
    std::int64_t whole(const Held& value, const std::string& name) const;

private:
    const Bridge& bridge_;
};

}  // namespace trocar::libtorch
