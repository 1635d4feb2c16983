#pragma once

namespace trocar::cli {

// From now on the first Ctrl-C only sets the flag, and the second ends the process with code 130. A
// broken pipe becomes an error of the write instead of a signal.
void catch_signals();

bool interrupted();

}  // namespace trocar::cli
