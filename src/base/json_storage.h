#pragma once

#include "base/json.h"

// What arrays and objects hold, for the sources of Json alone.
namespace trocar {

struct Json::Array {
    std::vector<Json> elements;
};

struct Json::Object {
    std::vector<JsonMember> members;
    // Their places in the order of their keys; empty where members are sorted, or few.
    std::vector<std::uint32_t> by_key;
    Order order = Order::sorted;

    // After members were appended without a look at their keys.
    void finish();
    JsonMember* find(std::string_view key);
    JsonMember& add(std::string_view key);

private:
    std::vector<std::uint32_t>::iterator place_of(std::string_view key);
    void number_members();
    void finish_sorted();
    void finish_given();
};

}  // namespace trocar
