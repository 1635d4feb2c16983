#include "formats/onnx/origin.h"

namespace trocar::onnx {

namespace {

// Adds a component to a module path. Exporters repeat the path so far where a module sits in a
// list: after "layer1" comes "layer1.0".
void enter(std::vector<std::string_view>& path, std::string_view component) {
    if (component.empty()) {
        return;
    }
    if (!path.empty() && component.size() > path.back().size() &&
        component.substr(0, path.back().size()) == path.back() &&
        component[path.back().size()] == '.') {
        path.back() = component;
        return;
    }
    path.push_back(component);
}

std::string join(const std::vector<std::string_view>& path) {
    std::string text;
    for (const auto component : path) {
        text += text.empty() ? "" : ".";
        text += component;
    }
    return text;
}

std::string_view value_of(const std::vector<Property>& metadata, std::string_view key) {
    for (const auto& entry : metadata) {
        if (entry.key == key) {
            return entry.value;
        }
    }
    return {};
}

// Scopes from outside in, each the full path of a module; the last one is the op itself.
std::string module_of_scopes(const std::vector<std::string>& scopes) {
    return scopes.size() < 2 ? std::string() : scopes[scopes.size() - 2];
}

// ": ResNet/layer1: Sequential/layer1.0: Block/conv2d: aten.conv2d": the parts before the colons,
// each the full path of a module; the last one is the op itself.
std::string module_of_namespace(std::string_view text) {
    std::vector<std::string_view> names;
    while (!text.empty()) {
        const auto end = std::min(text.find('/'), text.size());
        const auto part = text.substr(0, end);
        names.push_back(part.substr(0, part.find(':')));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return names.size() < 2 ? std::string() : std::string(names[names.size() - 2]);
}

// What follows a backslash in a Python string.
char unescape(char c) {
    switch (c) {
        case 'n':
            return '\n';
        case 't':
            return '\t';
        case 'r':
            return '\r';
        default:
            return c;
    }
}

}  // namespace

std::string module_of_name(std::string_view name) {
    if (name.empty() || name.front() != '/') {
        return {};
    }
    const auto last = name.rfind('/');
    std::string_view rest = name.substr(0, last);
    std::vector<std::string_view> path;
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const auto end = std::min(rest.find('/'), rest.size());
        enter(path, rest.substr(0, end));
        rest.remove_prefix(end);
    }
    return join(path);
}

std::vector<std::string> parse_python_strings(std::string_view text) {
    std::vector<std::string> found;
    std::size_t at = 0;
    const auto skip_blanks = [&] {
        while (at < text.size() && (text[at] == ' ' || text[at] == '\n')) {
            ++at;
        }
    };
    const auto take = [&](char c) {
        skip_blanks();
        const bool there = at < text.size() && text[at] == c;
        at += there ? 1 : 0;
        return there;
    };
    if (!take('[')) {
        return {};
    }
    while (!take(']')) {
        if (!found.empty() && !take(',')) {
            return {};
        }
        skip_blanks();
        if (at >= text.size() || (text[at] != '\'' && text[at] != '"')) {
            return {};
        }
        const char quote = text[at++];
        std::string item;
        while (at < text.size() && text[at] != quote) {
            if (text[at] == '\\' && at + 1 < text.size()) {
                item += unescape(text[at + 1]);
                at += 2;
            } else {
                item += text[at++];
            }
        }
        if (at >= text.size()) {
            return {};
        }
        ++at;
        found.push_back(std::move(item));
    }
    return found;
}

Origin find_origin(std::string_view name, const std::vector<Property>& metadata) {
    Origin origin;
    origin.module =
        module_of_scopes(parse_python_strings(value_of(metadata, "pkg.torch.onnx.name_scopes")));
    if (origin.module.empty()) {
        origin.module = module_of_namespace(value_of(metadata, "namespace"));
    }
    if (origin.module.empty()) {
        origin.module = module_of_name(name);
    }
    origin.source = value_of(metadata, "pkg.torch.onnx.stack_trace");
    return origin;
}

}  // namespace trocar::onnx
