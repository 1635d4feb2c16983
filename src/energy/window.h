#pragma once

#include <vector>

#include "energy/reader.h"

namespace trocar::energy {

// The arithmetic of windows, apart from clocks and files.

// One read of all channels.
struct Edge {
    double at = 0;         // steady seconds, the middle of the read
    double span = 0;       // seconds the read took
    bool aligned = false;  // the first summed channel had just changed
    std::vector<Value> values;
};

// What a counter counted between two reads. A counter that went back wrapped only where its range
// and `most_watts` explain it.
EnergyDomainWindow energy_counted(const Channel& channel, const Value& before, const Value& after,
                                  double seconds, double most_watts);

// Two reads of counters. `tick`: seconds; absent, there is no uncertainty.
void fill_counted(EnergyWindow& window, const std::vector<Channel>& channels, const Edge& begin,
                  const Edge& end, std::optional<double> tick, double most_watts);

// Samples of power, in the order of time, the first at the begin and the last at the end.
void fill_integrated(EnergyWindow& window, const std::vector<Channel>& channels,
                     const std::vector<Edge>& samples, const Found& found, double most_watts);

// The first channel that is summed; the number of channels when none is.
std::size_t leading(const std::vector<Channel>& channels);

}  // namespace trocar::energy
