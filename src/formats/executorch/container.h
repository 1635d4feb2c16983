#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/executorch/program_generated.h"
#include "trocar/error.h"
#include "trocar/tensor.h"

namespace trocar::executorch {

// A file: the program, verified, and the segments behind it.
class Container {
public:
    // `name` is how messages call it. Throws Error(input), Error(unsupported) on another version.
    Container(Bytes file, std::shared_ptr<const void> owner, std::string name);

    const fb::Program& program() const { return *program_; }
    const std::shared_ptr<const void>& owner() const { return owner_; }
    Bytes file() const { return file_; }
    std::uint64_t segments_at() const { return segments_at_; }

    Bytes segment(std::uint64_t number) const;
    // `size` bytes of the constant, or of the initial state, that a tensor names.
    Bytes constant(std::uint32_t number, std::size_t size) const;
    Bytes state(std::uint64_t group, std::uint32_t number, std::size_t size) const;
    Bytes delegate(const fb::BackendDelegateDataReference& where) const;
    // Data that delegates ask for by its name, in the order of the file.
    std::vector<std::pair<std::string_view, Bytes>> named() const;

    void spend(std::size_t amount);  // throws when more is copied than the file can justify
    [[noreturn]] void fail(const std::string& what, Fault fault = Fault::input) const;

private:
    Bytes in_segment(const fb::SubsegmentOffsets& group, std::uint32_t number,
                     std::size_t size) const;

    Bytes file_;
    std::shared_ptr<const void> owner_;
    std::string name_;
    const fb::Program* program_ = nullptr;
    std::uint64_t segments_at_ = 0;
    std::size_t left_ = 0;
};

// "ET12" where the bytes begin like a program of any version; empty: they do not.
std::string_view identifier_of(Bytes head);

// The header behind the identifier, which says where the segments are.
inline constexpr std::string_view header_mark = "eh00";
inline constexpr std::size_t header_at = 8;
inline constexpr std::size_t header_size = 32;

}  // namespace trocar::executorch
