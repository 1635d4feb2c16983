#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "formats/pt2/types.h"
#include "util/strided.h"
#include "util/zip_archive.h"

namespace trocar::pt2 {

// The tensors that an archive stores beside a model: parameters, buffers, constants.
class Payloads {
public:
    // `owner` keeps the archive's bytes alive; `root` is the folder in which all members lie, with
    // its slash.
    Payloads(const ZipArchive& archive, std::string root, std::shared_ptr<const void> owner,
             JsonPlace place);

    // Takes in what a config lists: "data/weights/model_weights_config.json" with files in
    // "data/weights/". A config that is not there lists nothing.
    void read_config(const std::string& folder, const std::string& name);

    struct Payload {
        Constant constant;
        TensorMeta meta;
        // Equal for payloads that are the same elements of the same file.
        std::string identity;
        bool is_parameter = false;
    };
    // Nothing: not listed, or no tensor.
    std::optional<Payload> find(const std::string& name) const;
    // Payloads that are no tensors, with their files.
    const std::map<std::string, std::string>& objects() const { return objects_; }
    std::vector<std::string> names() const;

private:
    struct Entry {
        std::string file;  // in the archive
        TensorMeta meta;
        bool is_parameter = false;
        bool is_pickled = false;
    };
    Storage storage(const Entry& entry, const JsonPlace& place) const;

    const ZipArchive& archive_;
    std::string root_;
    std::shared_ptr<const void> owner_;
    JsonPlace place_;
    std::map<std::string, Entry> entries_;
    std::map<std::string, std::string> objects_;
    mutable std::map<std::string, Storage> unpacked_;
};

}  // namespace trocar::pt2
