#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#pragma GCC visibility push(default)
namespace trocar {

// Why a command cannot go on. The command line turns it into the exit code.
enum class Fault { usage, input, unsupported, engine, interrupted, internal };

// The one exception type of the library. `what()` is a full sentence for the user, without a final
// period; `hint()`, when not empty, is the next thing to try.
class Error : public std::runtime_error {
public:
    Error(Fault fault, const std::string& sentence, std::string hint = {})
        : std::runtime_error(sentence), fault_(fault), hint_(std::move(hint)) {}

    Fault fault() const { return fault_; }
    const std::string& hint() const { return hint_; }

private:
    Fault fault_;
    std::string hint_;
};

}  // namespace trocar
#pragma GCC visibility pop
