#include "formats/keep_unknown.h"

#include <algorithm>

namespace trocar {

void keep_unknown(const Json& object, std::initializer_list<std::string_view> known,
                  std::vector<Property>& metadata) {
    if (!object.is_object()) {
        return;
    }
    for (const auto& [key, value] : object.items()) {
        if (std::find(known.begin(), known.end(), key) == known.end() && !value.is_null()) {
            metadata.push_back({key, dump_json(value)});
        }
    }
}

}  // namespace trocar
