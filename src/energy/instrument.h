#pragma once

#include "trocar/energy.h"

namespace trocar {

// How a meter measures its windows: by reads at the edges, by samples, or from a log.
class EnergyInstrument {
public:
    explicit EnergyInstrument(EnergySource about) : source_(std::move(about)) {}
    EnergyInstrument(const EnergyInstrument&) = delete;
    EnergyInstrument& operator=(const EnergyInstrument&) = delete;
    virtual ~EnergyInstrument() = default;

    const EnergySource& source() const { return source_; }
    virtual void begin() = 0;
    virtual EnergyWindow end() = 0;  // after a begin
    virtual void sleep(double seconds) = 0;

    bool begun = false;

private:
    EnergySource source_;
};

}  // namespace trocar
