#include "trocar/deployed.h"

#include "run/canonical.h"
#include "run/deployed_map.h"

namespace trocar {

Deployed deploy(const Model& model, Engine& engine) {
    Deployed deployed;
    deployed.model = engine.deployed(model);
    order_canonically(model, deployed.model);
    map_to_sources(model, deployed);
    find_layouts(model, engine, deployed);
    name_canonically(model, deployed);
    return deployed;
}

}  // namespace trocar
