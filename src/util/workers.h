#pragma once

#include <cstddef>
#include <functional>

namespace trocar {

// Calls `work` with 0 … `parts` - 1, from up to `threads` threads, this one among them. The others
// are started when they are first needed and kept. While one call is under way, another one does
// its work alone. `work` must not throw.
void work_together(int threads, std::size_t parts, const std::function<void(std::size_t)>& work);

}  // namespace trocar
