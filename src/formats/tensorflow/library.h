#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/tensorflow/graph_reader.h"
#include "trocar/model.h"

namespace trocar::tensorflow {

// The functions of a file. A body is read when somebody asks for it, and then once.
class Library {
public:
    // `message`: a function library, empty where the file has none. `results` as for GraphReader.
    Library(FilePtr file, Bytes message, std::size_t& results);

    bool contains(const std::string& name) const { return entries_.contains(name); }
    Bytes message(const std::string& name) const { return entries_.at(name).message; }
    // As the file has it. Throws Error(input) when it is broken.
    const Function& find(const std::string& name);
    std::size_t size() const { return entries_.size(); }

private:
    struct Entry {
        Bytes message;
        std::shared_ptr<const Function> function;
    };
    struct Prototype {
        std::string name;
        std::string doc;
        std::vector<GraphReader::Argument> inputs;
        std::vector<std::string> outputs;
        std::vector<std::string> attributes;
    };
    Prototype read_prototype(Bytes message) const;
    void read_shapes(Bytes message, Prototype& prototype) const;
    std::shared_ptr<const Function> read(Bytes message);

    FilePtr file_;
    std::size_t* results_;
    std::unordered_map<std::string, Entry> entries_;
};

}  // namespace trocar::tensorflow
