// A tool library as an older Trocar would have it, for the tests.
#include <trocar/tool_library.h>

extern "C" __attribute__((visibility("default"))) const trocar::ToolEntry trocar_tool;
const trocar::ToolEntry trocar_tool{0, "Old", "Of another version", nullptr};
