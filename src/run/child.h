#pragma once

#include <sys/types.h>

#include <chrono>

namespace trocar {

// For processes that are forked from this one and do a part of its work.

// To be called first in the child: it dies with its parent (by SIGKILL), leaves Ctrl-C to it, has
// none of its signal handlers and exit functions, and leaves no core file.
void settle_child(pid_t parent);

// Waits for a child so long, then kills it. Returns its wait status.
int end_child(pid_t child, std::chrono::milliseconds patience);

}  // namespace trocar
