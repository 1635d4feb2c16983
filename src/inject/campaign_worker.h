#pragma once

#include <vector>

#include "base/fork_server.h"
#include "inject/board.h"
#include "inject/injector.h"
#include "run/isolate_message.h"

namespace trocar::inject {

// What a child tells, in the detail of a message. `ready` comes first, of workers of the fork
// server: how many faults and trials there are, and the golden outputs of the first input.
enum class Told : std::uint32_t { ready, golden, results, audited, done };

// Does what comes on a socket, and tells on it what came of it, to the end of this process. A share
// without trials is a rehearsal, of every op where it is to be done plainly. The faults of a trial
// that is not drawn are the hint of the message.
// `quiet`: what the process prints is dropped.
[[noreturn]] void serve(Injector& injector, int socket, Board& board, bool quiet);

// A process that makes the injector's campaign by its recipe, starts an engine of its own, and
// serves as above.
Worker start_worker(ForkServer& server, const Injector& injector, const Board& board, bool quiet);

// Those that are tensors: others do not leave a process.
std::vector<NamedValue> tensors_of(const std::vector<NamedValue>& values);

}  // namespace trocar::inject
