#pragma once

#include <string>
#include <string_view>

namespace trocar {

// Writes zip archives for tests.
class TestZip {
public:
    // `padding` bytes go into the local header's extra field, as torch does to align members.
    TestZip& add(std::string_view name, std::string_view data, std::size_t padding = 0) {
        return put(name, data, data, 0, padding);
    }
    // `packed` stands for `data` by a method of packing.
    TestZip& put(std::string_view name, std::string_view packed, std::string_view data, int method,
                 std::size_t padding = 0) {
        const auto crc = number(0, 4);  // readers here do not look at it
        const auto sizes = number(packed.size(), 4) + number(data.size(), 4);
        const auto common = number(20, 2) + number(0, 2) +
                            number(static_cast<std::size_t>(method), 2) + number(0, 4) + crc +
                            sizes + number(name.size(), 2);
        directory_ += "PK\1\2" + number(20, 2) + common + number(0, 2) + number(0, 2) +
                      number(0, 2) + number(0, 2) + number(0, 4) + number(file_.size(), 4) +
                      std::string(name);
        file_ += "PK\3\4" + common + number(padding, 2) + std::string(name) +
                 std::string(padding, '\0') + std::string(packed);
        ++count_;
        return *this;
    }
    std::string bytes() const {
        return file_ + directory_ + "PK\5\6" + number(0, 4) + number(count_, 2) +
               number(count_, 2) + number(directory_.size(), 4) + number(file_.size(), 4) +
               number(0, 2);
    }

private:
    static std::string number(std::size_t value, int width) {
        std::string text;
        for (int i = 0; i < width; ++i) {
            text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
        }
        return text;
    }

    std::string file_;
    std::string directory_;
    std::size_t count_ = 0;
};

}  // namespace trocar
