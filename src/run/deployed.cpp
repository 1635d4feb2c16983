#include "trocar/deployed.h"

#include "run/deployed_map.h"

namespace trocar {

Deployed deploy(const Model& model, Engine& engine) {
    Deployed deployed;
    deployed.model = engine.deployed(model);
    map_to_sources(model, deployed);
    find_layouts(model, engine, deployed);
    return deployed;
}

}  // namespace trocar
