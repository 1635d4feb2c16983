#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "trocar/model.h"

namespace trocar::mxnet {

// A symbol in JSON, or a file of arrays that lies beside one?
bool matches(Bytes head, const std::filesystem::path& path);

// Reads a symbol and the arrays beside it: NAME-symbol.json with NAME-0000.params (the highest
// number there is), NAME.json with NAME.params. Either of the two may be given.
Model read_file(const std::filesystem::path& path);

// A model from the text of a symbol and the bytes of its arrays, which `owner` keeps alive.
// `arrays` empty: there are none. `where` and `arrays_where` name the two in messages.
Model read_mxnet(std::string_view symbol, Bytes arrays, const std::shared_ptr<const void>& owner,
                 const std::string& where, const std::string& arrays_where);

}  // namespace trocar::mxnet
