#include "formats/executorch/reader.h"

#include <fmt/format.h>

#include "formats/executorch/plan_reader.h"
#include "formats/executorch/types.h"
#include "util/mapped_file.h"

namespace trocar::executorch {

namespace {

constexpr std::string_view usual_method = "forward";

std::size_t main_plan(const Container& container) {
    const auto* plans = container.program().execution_plan();
    for (flatbuffers::uoffset_t i = 0; i < size_of(plans); ++i) {
        if (text_of(plans->Get(i)->name()) == usual_method) {
            return i;
        }
    }
    return 0;
}

void read_plans(Container& container, Model& model) {
    const auto* plans = container.program().execution_plan();
    if (size_of(plans) == 0) {
        container.fail("the program has no plan");
    }
    const auto main = main_plan(container);
    for (flatbuffers::uoffset_t i = 0; i < size_of(plans); ++i) {
        auto graph = PlanReader(container, *plans->Get(i)).read();
        if (i == main) {
            model.graph = std::move(graph);
            continue;
        }
        auto function = std::make_shared<Function>();
        function->domain = "method";
        function->name = graph.name.empty() ? fmt::format("method_{}", i) : graph.name;
        function->body = std::move(graph);
        model.functions.push_back(std::move(function));
    }
}

}  // namespace

bool matches(Bytes head, const std::filesystem::path&) {
    return !identifier_of(head).empty();
}

Model read_bytes(Bytes bytes, std::shared_ptr<const void> owner,
                 const std::filesystem::path& path) {
    const auto name =
        path.empty() ? std::string("the program") : fmt::format("'{}'", path.string());
    Container container(bytes, owner, name);
    Model model;
    model.format = "executorch";
    model.dialect = "aten";
    model.path = path;
    model.file_bytes = bytes.size();
    model.ir_version = container.program().version();
    read_plans(container, model);
    auto image = std::make_shared<Image>();
    model.source.bytes = bytes;
    image->owner = std::move(owner);
    image->file = bytes;
    image->metadata = model.metadata;
    model.image = std::move(image);
    return model;
}

Model read_file(const std::filesystem::path& path) {
    auto file = MappedFile::open(path);
    return read_bytes(file->bytes(), file, path);
}

}  // namespace trocar::executorch
