#include "util/library_files.h"

#include <elf.h>
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

#include "trocar/error.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr unsigned this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned this_machine = EM_AARCH64;
#elif defined(__riscv)
constexpr unsigned this_machine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr unsigned this_machine = EM_PPC64;
#elif defined(__s390x__)
constexpr unsigned this_machine = EM_S390;
#else
constexpr unsigned this_machine = EM_NONE;  // unknown: the loader decides
#endif

std::string machine_name(unsigned machine) {
    switch (machine) {
        case EM_386:
            return "32-bit x86";
        case EM_ARM:
            return "32-bit ARM";
        case EM_X86_64:
            return "x86-64";
        case EM_AARCH64:
            return "64-bit ARM";
        case EM_RISCV:
            return "RISC-V";
        case EM_PPC64:
            return "64-bit POWER";
        case EM_S390:
            return "IBM Z";
        default:
            return fmt::format("machine {}", machine);
    }
}

std::string escaped(const std::string& folder) {
    std::string text;
    for (const char c : folder) {
        if (std::strchr("*?[\\", c) != nullptr) {
            text += '\\';
        }
        text += c;
    }
    return text;
}

// The folders of the dynamic loader's configuration.
std::vector<std::string> loader_folders() {
    std::vector<std::string> folders;
    std::vector<std::string> files{"/etc/ld.so.conf"};
    for (std::size_t i = 0; i < files.size() && i < 256; ++i) {
        std::ifstream in(files[i]);
        for (std::string line; std::getline(in, line);) {
            if (line.starts_with('/')) {
                folders.push_back(line.substr(0, line.find_first_of(" \t#")));
            } else if (line.starts_with("include ")) {
                glob_t matches{};
                if (::glob(line.c_str() + 8, 0, nullptr, &matches) == 0) {
                    files.insert(files.end(), matches.gl_pathv,
                                 matches.gl_pathv + matches.gl_pathc);
                }
                ::globfree(&matches);
            }
        }
    }
    return folders;
}

}  // namespace

void LibrarySearch::add_file(const fs::path& file) {
    std::error_code failure;
    const auto path = fs::canonical(file, failure);
    if (!failure && fs::is_regular_file(path, failure) && seen_.insert(path).second) {
        found_.push_back({path.string(), version_in_(path)});
    }
}

void LibrarySearch::add_folder(const std::string& folder,
                               const std::vector<std::string>& patterns) {
    const auto before = found_.size();
    for (const auto& pattern : patterns) {
        glob_t matches{};
        const auto text =
            fmt::format("{}/{}{}{}*", escaped(folder), pattern, pattern.empty() ? "" : "/", stem_);
        if (::glob(text.c_str(), 0, nullptr, &matches) == 0) {
            for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
                add_file(matches.gl_pathv[i]);
            }
        }
        ::globfree(&matches);
    }
    std::stable_sort(found_.begin() + static_cast<std::ptrdiff_t>(before), found_.end(),
                     [](const LibraryFile& a, const LibraryFile& b) {
                         return older_version(b.version, a.version);
                     });
}

void LibrarySearch::add_system() {
    for (const auto& folder : loader_folders()) {
        add_folder(folder, {""});
    }
    for (const char* folder : {"/usr/local", "/usr", "/"}) {
        add_folder(folder, {"lib64", "lib", "lib/*-linux-gnu"});
    }
}

std::string wheel_version(const std::filesystem::path& packages, std::string_view package) {
    constexpr std::string_view ending = ".dist-info";
    const auto start = std::string(package) + '-';
    std::error_code failure;
    for (std::filesystem::directory_iterator at(packages, failure), end; !failure && at != end;
         at.increment(failure)) {
        const auto name = at->path().filename().string();
        if (name.starts_with(start) && name.ends_with(ending) &&
            name.size() > start.size() + ending.size()) {
            return name.substr(start.size(), name.size() - start.size() - ending.size());
        }
    }
    return {};
}

bool older_version(const std::string& a, const std::string& b) {
    const char* at_a = a.data();
    const char* at_b = b.data();
    const char* end_a = at_a + a.size();
    const char* end_b = at_b + b.size();
    while (at_a < end_a || at_b < end_b) {
        int number_a = -1;
        int number_b = -1;
        at_a = std::from_chars(at_a, end_a, number_a).ptr;
        at_b = std::from_chars(at_b, end_b, number_b).ptr;
        if (number_a != number_b || number_a < 0) {
            return number_a < number_b;
        }
        at_a += at_a < end_a ? 1 : 0;  // the point
        at_b += at_b < end_b ? 1 : 0;
    }
    return false;
}

void check_library_file(const fs::path& path, const std::string& hint) {
    const auto refuse = [&](const std::string& why) {
        throw Error(Fault::engine, fmt::format("'{}' {}", path.string(), why), hint);
    };
    std::error_code failure;
    const auto size = fs::file_size(path, failure);
    std::ifstream in(path, std::ios::binary);
    if (failure || !in) {
        refuse("cannot be read");
    }
    Elf64_Ehdr header{};
    in.read(reinterpret_cast<char*>(&header), sizeof header);
    const auto got = static_cast<std::size_t>(in.gcount());
    if (got < EI_NIDENT || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        refuse(header.e_ident[0] == 'M' && header.e_ident[1] == 'Z'
                   ? "is a Windows library, not a Linux one"
                   : "is not a shared library");
    }
    // Both classes have e_machine at the same place.
    if (this_machine != EM_NONE && header.e_machine != this_machine) {
        refuse(fmt::format("is for {}, this machine is {}", machine_name(header.e_machine),
                           machine_name(this_machine)));
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) {
        refuse("is not a 64-bit shared library");
    }
    // The loader maps what the headers promise; beyond the end of the file that would be fatal.
    bool complete = got == sizeof header && header.e_phentsize == sizeof(Elf64_Phdr);
    in.seekg(static_cast<std::streamoff>(header.e_phoff));
    for (unsigned i = 0; complete && i < header.e_phnum; ++i) {
        Elf64_Phdr part{};
        in.read(reinterpret_cast<char*>(&part), sizeof part);
        complete = in.good() && part.p_filesz <= size && part.p_offset <= size - part.p_filesz;
    }
    if (!complete) {
        refuse("is cut short or damaged");
    }
}

}  // namespace trocar
