#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "engines/onnxruntime/library.h"
#include "trocar/engine.h"

namespace trocar::ort {

// The ops of `host_domain` as custom ops of one program. Must outlive the program's session.
class HostOps {
public:
    HostOps(std::shared_ptr<Environment> environment, HostFunction function);
    HostOps(const HostOps&) = delete;
    HostOps& operator=(const HostOps&) = delete;
    ~HostOps();

    void add_to(SessionOptions* options) const;

    // Throws what a callback threw since the last call, if one did. `status`, the engine's account
    // of it, is then released.
    void rethrow(Status* status);

    const Environment& environment() const { return *environment_; }
    const std::shared_ptr<Environment>& shared_environment() const { return environment_; }

    // What the engine calls; see host_ops.cpp.
    struct Definition;
    Status* call(std::int64_t site, KernelContext* context) noexcept;

private:
    std::shared_ptr<Environment> environment_;
    HostFunction function_;
    std::exception_ptr failure_;
    std::unique_ptr<Definition> look_;
    std::unique_ptr<Definition> tap_;
    std::unique_ptr<Definition> call_;
    CustomOpDomain* domain_ = nullptr;
};

// Does a graph, or a body in it, hold ops of the domain?
bool holds_host_ops(const Model& model);

}  // namespace trocar::ort
