#include "base/json_storage.h"

#include <algorithm>
#include <numeric>

namespace trocar {

namespace {

// An object with more members than this is not searched one by one.
constexpr std::size_t few = 16;

bool key_less(const JsonMember& a, const JsonMember& b) {
    return a.key < b.key;
}

}  // namespace

std::vector<std::uint32_t>::iterator Json::Object::place_of(std::string_view key) {
    return std::lower_bound(
        by_key.begin(), by_key.end(), key,
        [&](std::uint32_t at, std::string_view wanted) { return members[at].key < wanted; });
}

void Json::Object::number_members() {
    by_key.resize(members.size());
    std::iota(by_key.begin(), by_key.end(), std::uint32_t{0});
    std::stable_sort(by_key.begin(), by_key.end(), [&](std::uint32_t a, std::uint32_t b) {
        return members[a].key < members[b].key;
    });
}

void Json::Object::finish_sorted() {
    if (members.size() > few) {
        if (!std::is_sorted(members.begin(), members.end(), key_less)) {
            std::stable_sort(members.begin(), members.end(), key_less);
        }
    } else {
        for (auto at = members.begin(); at != members.end(); ++at) {
            const auto place = std::upper_bound(members.begin(), at, *at, key_less);
            if (place != at) {
                auto member = std::move(*at);
                std::move_backward(place, at, at + 1);
                *place = std::move(member);
            }
        }
    }
    // Of those with the same key the last one stays.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (kept > 0 && members[kept - 1].key == members[i].key) {
            members[kept - 1].value = std::move(members[i].value);
        } else {
            if (kept != i) {
                members[kept] = std::move(members[i]);
            }
            ++kept;
        }
    }
    members.resize(kept);
}

void Json::Object::finish_given() {
    number_members();
    std::vector<bool> repeated(members.size());
    bool any = false;
    for (std::size_t i = 1, first = 0; i < by_key.size(); ++i) {
        if (members[by_key[first]].key == members[by_key[i]].key) {
            members[by_key[first]].value = std::move(members[by_key[i]].value);
            repeated[by_key[i]] = any = true;
        } else {
            first = i;
        }
    }
    if (any) {
        std::size_t number = 0;
        std::erase_if(members, [&](const JsonMember&) { return repeated[number++]; });
        number_members();
    }
    if (members.size() <= few) {
        by_key = {};
    }
}

void Json::Object::finish() {
    if (members.size() < 2) {
        return;
    }
    if (order == Order::sorted) {
        finish_sorted();
    } else {
        finish_given();
    }
}

JsonMember* Json::Object::find(std::string_view key) {
    if (members.size() <= few) {
        const auto at = std::find_if(members.begin(), members.end(),
                                     [&](const JsonMember& member) { return member.key == key; });
        return at == members.end() ? nullptr : &*at;
    }
    if (order == Order::given) {
        const auto at = place_of(key);
        return at == by_key.end() || members[*at].key != key ? nullptr : &members[*at];
    }
    const auto at = std::lower_bound(
        members.begin(), members.end(), key,
        [](const JsonMember& member, std::string_view wanted) { return member.key < wanted; });
    return at == members.end() || at->key != key ? nullptr : &*at;
}

JsonMember& Json::Object::add(std::string_view key) {
    JsonMember fresh{std::string(key), {}};
    if (order == Order::sorted) {
        const auto at = std::upper_bound(members.begin(), members.end(), fresh, key_less);
        return *members.insert(at, std::move(fresh));
    }
    members.push_back(std::move(fresh));
    if (!by_key.empty()) {
        by_key.insert(place_of(key), static_cast<std::uint32_t>(members.size() - 1));
    } else if (members.size() > few) {
        number_members();
    }
    return members.back();
}

}  // namespace trocar
