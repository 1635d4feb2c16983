#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace trocar {

// Names of tensors as names of files: nothing leads out of the folder, and no two are the same, not
// even where upper and lower case are not told apart.
class FileStems {
public:
    std::string add(std::string_view name);

private:
    std::unordered_set<std::string> taken_;
};

}  // namespace trocar
