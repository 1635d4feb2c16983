#pragma once

#include <cstdint>
#include <vector>

#include "run/sites.h"

namespace trocar {

// A loop around a tap, and the input of the tap that tells its round.
struct LoopInput {
    std::size_t input = 0;  // of the tap
    bool counts = false;    // it is the round itself (Loop); else a scanned tensor
    std::size_t axis = 0;   // of a scanned tensor: along which it is scanned
};

// An op of `host_domain` in a rewritten graph: which tensors of the op it stands at it carries.
struct Tap {
    Port::When when = Port::When::after;
    std::size_t site = 0;
    // Slots of the op that it passes on: outputs (after), inputs (before).
    std::vector<std::size_t> passed;
    // Input slots that it only reads, and from which of its own inputs on they stand.
    std::vector<std::size_t> read;
    std::vector<LoopInput> loops;  // outermost first
    std::uint64_t calls = 0;       // in this run
};

// Puts a tap at the op of `site` into `model`, a clone of the model the site was found in. The tap
// carries `number` and its own description is returned.
Tap insert_tap(Model& model, const Site& site, std::size_t site_number, Port::When when,
               std::size_t number);

// Why the op of a site cannot be served by taps; empty: it can.
std::string why_no_tap(const Model& model, const Site& site);

}  // namespace trocar
