#pragma once

#include "engines/reference/windows.h"

namespace trocar::reference {

// Numbers with the shape of their tensor.
struct Picture {
    Shape shape;  // batch, channels, picture
    Numbers numbers;
};

// Without bias. Strides, pads, groups… are attributes of the call.
Picture convolved(const Call& call, const Picture& x, const Picture& weights);

// Adds one number per channel.
void add_bias(Picture& x, const Numbers& bias);

}  // namespace trocar::reference
