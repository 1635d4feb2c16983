// A library that needs a function nobody has, for the tests.
#include <trocar/tool_library.h>

namespace trocar {
int nobody_has_this();
}

class Missing : public trocar::Tool {
public:
    explicit Missing(const trocar::ToolSettings&) : number_(trocar::nobody_has_this()) {}
    int number() const { return number_; }

private:
    int number_;
};

TROCAR_TOOL(Missing, "Needs what is not there")
