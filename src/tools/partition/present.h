#pragma once

#include "trocar/partition.h"
#include "trocar/report.h"

namespace trocar::partition_tool_parts {

Table part_table(const Partition& partition, const PartitionManifest& manifest);
Table cut_table(const PartitionManifest& manifest);

}  // namespace trocar::partition_tool_parts
