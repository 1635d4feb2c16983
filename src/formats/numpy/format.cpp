#include "trocar/format.h"

#include <fmt/format.h>

#include "formats/numpy/npy.h"
#include "formats/numpy/npz.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar {

namespace {

// Below this size a file is copied: then nobody who rewrites it in place meanwhile is noticed.
constexpr std::size_t mapped_from = std::size_t{1} << 20;

std::vector<NamedValue> read_values(const std::filesystem::path& path) {
    const auto file = MappedFile::open(path);
    const auto bytes = file->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with(numpy::npy_magic)) {
        const auto where = fmt::format("'{}'", path.string());
        const auto owner = bytes.size() >= mapped_from ? file : nullptr;
        return {{"", numpy::read_array(bytes, owner, where)}};
    }
    if (text.starts_with("PK")) {
        return numpy::read_archive(path);
    }
    throw Error(Fault::input,
                fmt::format("'{}' is neither an .npy array nor an .npz archive", path.string()));
}

void write_value(const NamedValue& value, const std::filesystem::path& path, Sync sync) {
    numpy::write_array(value.value, path, sync);
}

}  // namespace

extern const Format numpy_format{
    .name = "numpy",
    .summary = "NumPy arrays and archives of them",
    .suffixes = ".npy .npz",
    .dialect = "",
    .read_values = read_values,
    .write_value = write_value,
    .holds = numpy::holds,
    .create_archive = numpy::create_archive,
    .archive_suffix = ".npz",
};

}  // namespace trocar
