// A tool that does what tools should not, for the tests: how=throw|crash|late.
#include <trocar/tool_library.h>

#include <csignal>
#include <stdexcept>

class Misbehave : public trocar::Tool {
public:
    explicit Misbehave(const trocar::ToolSettings& settings) {
        const auto how = settings.text("how", "throw");
        after(settings.selector("at", trocar::op("Gemm")), [how](const trocar::Port&) {
            if (how == "crash") {
                std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would report it instead
                std::raise(SIGSEGV);
            }
            throw std::runtime_error("something is wrong");
        });
    }
};

TROCAR_TOOL(Misbehave, "Does what tools should not")
