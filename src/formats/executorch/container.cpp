#include "formats/executorch/container.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/executorch/types.h"

namespace trocar::executorch {

namespace {

constexpr std::string_view identifier = "ET12";
constexpr std::size_t deepest = 64;
// The header of the first versions has no size of the segments.
constexpr std::size_t least_header = 24;
// What may be made of a file, as a multiple of its size: data that is referred to again and again
// would else take more memory than the file can justify.
constexpr std::size_t most_copies = 16;

template <class T>
T number_at(Bytes bytes, std::size_t place) {
    T number{};
    std::memcpy(&number, bytes.data() + place, sizeof number);
    return number;
}

}  // namespace

std::string_view identifier_of(Bytes head) {
    if (head.size() < header_at) {
        return {};
    }
    const std::string_view found(reinterpret_cast<const char*>(head.data()) + 4, 4);
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return found.starts_with("ET") && digit(found[2]) && digit(found[3]) ? found
                                                                         : std::string_view();
}

Container::Container(Bytes file, std::shared_ptr<const void> owner, std::string name)
    : file_(file),
      owner_(std::move(owner)),
      name_(std::move(name)),
      left_(most_copies * file.size() + (std::size_t{1} << 20)) {
    const auto found = identifier_of(file);
    if (found.empty()) {
        throw Error(Fault::input, fmt::format("{} is no ExecuTorch program", name_));
    }
    if (found != identifier) {
        throw Error(Fault::unsupported,
                    fmt::format("{} is of version '{}' of the format; only '{}' can be read", name_,
                                found, identifier));
    }
    std::uint64_t size = file.size();
    if (file.size() >= header_at + least_header &&
        std::string_view(reinterpret_cast<const char*>(file.data()) + header_at, 4) ==
            header_mark) {
        const auto length = number_at<std::uint32_t>(file, header_at + 4);
        size = number_at<std::uint64_t>(file, header_at + 8);
        segments_at_ = number_at<std::uint64_t>(file, header_at + 16);
        if (length < least_header || size > file.size() || segments_at_ > file.size()) {
            fail("its header speaks of more bytes than the file has");
        }
    }
    if (size >= FLATBUFFERS_MAX_BUFFER_SIZE) {
        fail("its program takes more than 2 GB");
    }
    flatbuffers::Verifier::Options limits;
    limits.max_depth = deepest;
    limits.max_tables = static_cast<flatbuffers::uoffset_t>(size / 4 + 64);
    const auto* data = reinterpret_cast<const std::uint8_t*>(file.data());
    flatbuffers::Verifier verifier(data, static_cast<std::size_t>(size), limits);
    if (!fb::VerifyProgramBuffer(verifier)) {
        throw Error(Fault::input,
                    fmt::format("{} is no complete ExecuTorch program: an offset or a length in it "
                                "points outside the file",
                                name_),
                    "was it copied or downloaded completely?");
    }
    program_ = fb::GetProgram(data);
}

void Container::fail(const std::string& what, Fault fault) const {
    throw Error(fault, fmt::format("{}: {}", name_, what));
}

void Container::spend(std::size_t amount) {
    if (amount > left_) {
        fail("the file refers to the same data so often that it would not fit in memory");
    }
    left_ -= amount;
}

Bytes Container::segment(std::uint64_t number) const {
    if (number >= size_of(program_->segments())) {
        fail(fmt::format("there is no segment {}", number));
    }
    const auto& found = *program_->segments()->Get(static_cast<flatbuffers::uoffset_t>(number));
    const auto behind = file_.subspan(segments_at_);
    if (found.offset() > behind.size() || found.size() > behind.size() - found.offset()) {
        fail(fmt::format("segment {} lies outside the file", number));
    }
    return behind.subspan(found.offset(), found.size());
}

Bytes Container::in_segment(const fb::SubsegmentOffsets& group, std::uint32_t number,
                            std::size_t size) const {
    if (number >= size_of(group.offsets())) {
        fail(fmt::format("a tensor names data {}, and there are {}", number,
                         size_of(group.offsets())));
    }
    const auto bytes = segment(group.segment_index());
    const auto offset = item_of(group.offsets(), number);
    if (offset > bytes.size() || size > bytes.size() - offset) {
        fail(fmt::format("the data {} of a tensor lies outside its segment", number));
    }
    return bytes.subspan(offset, size);
}

Bytes Container::constant(std::uint32_t number, std::size_t size) const {
    if (const auto* group = program_->constant_segment();
        group != nullptr && size_of(group->offsets()) > 0) {
        return in_segment(*group, number, size);
    }
    if (number >= size_of(program_->constant_buffer())) {
        fail(fmt::format("a tensor names data {}, and there are {}", number,
                         size_of(program_->constant_buffer())));
    }
    const auto* stored = program_->constant_buffer()->Get(number)->storage();
    if (size_of(stored) < size) {
        fail(fmt::format("the data {} of a tensor has {} bytes, and {} are needed", number,
                         size_of(stored), size));
    }
    return size == 0 ? Bytes() : std::as_bytes(std::span(stored->data(), size));
}

Bytes Container::state(std::uint64_t group, std::uint32_t number, std::size_t size) const {
    if (group >= size_of(program_->mutable_data_segments())) {
        fail("a tensor names an initial state that is not there");
    }
    return in_segment(
        *program_->mutable_data_segments()->Get(static_cast<flatbuffers::uoffset_t>(group)), number,
        size);
}

Bytes Container::delegate(const fb::BackendDelegateDataReference& where) const {
    if (where.location() == fb::DataLocation::SEGMENT) {
        return segment(where.index());
    }
    if (where.index() >= size_of(program_->backend_delegate_data())) {
        fail("a delegate names data that is not there");
    }
    const auto* data = program_->backend_delegate_data()->Get(where.index())->data();
    return size_of(data) == 0 ? Bytes() : std::as_bytes(std::span(data->data(), data->size()));
}

std::vector<std::pair<std::string_view, Bytes>> Container::named() const {
    std::vector<std::pair<std::string_view, Bytes>> all;
    const auto* stored = program_->named_data();
    for (flatbuffers::uoffset_t i = 0; i < size_of(stored); ++i) {
        all.emplace_back(text_of(stored->Get(i)->key()), segment(stored->Get(i)->segment_index()));
    }
    return all;
}

}  // namespace trocar::executorch
