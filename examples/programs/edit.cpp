// Edits that are saved: insert, remove and replace ops, then run the files anywhere.
//
//     edit MODEL FOLDER
#include <trocar/error.h>
#include <trocar/model.h>
#include <trocar/pattern.h>

#include <filesystem>
#include <iostream>

namespace {

using namespace trocar;

void edit(const std::filesystem::path& path, const std::filesystem::path& folder) {
    // An op after every convolution; all readers read what it gives.
    auto inserted = load(path);
    const auto count = inserted.graph.insert_after(op("Conv"), OpSpec{.type = "Tanh"});
    std::cout << "inserted " << count << '\n';
    save(inserted, folder / "inserted.onnx");

    // Readers of what a removed op wrote read what it read.
    auto removed = load(path);
    std::cout << "removed " << removed.graph.remove(op("Relu") & in_module("block.*")) << '\n';
    save(removed, folder / "removed.onnx");

    // Another op in the place of an op; inputs, outputs and name are taken over.
    auto replaced = load(path);
    std::cout << "replaced " << replaced.graph.replace(op("Relu"), OpSpec{.type = "Sigmoid"})
              << '\n';
    save(replaced, folder / "replaced.onnx");

    // Where several ops follow one another.
    auto rewritten = load(path);
    const auto edits = rewrite(rewritten.graph, pattern("Conv -> act=Relu -> MaxPool"),
                               [](Graph& graph, const Pattern::Match& match) {
                                   auto spec = static_cast<OpSpec>(graph.op(match["act"]));
                                   spec.type = "Softplus";
                                   graph.replace(match["act"], spec);
                                   return true;
                               });
    std::cout << "rewritten " << edits << '\n';
    save(rewritten, folder / "rewritten.onnx");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: edit MODEL FOLDER\n";
        return 2;
    }
    try {
        edit(argv[1], argv[2]);
        return 0;
    } catch (const Error& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
