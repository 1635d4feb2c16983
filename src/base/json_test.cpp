#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace trocar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Order = Json::Order;

std::string again(std::string_view text, Order order = Order::sorted, int indent = -1) {
    const auto json = Json::parse(text, order);
    return json ? json->dump(indent) : "no JSON";
}

std::string refusal(std::string_view text, std::size_t deepest = SIZE_MAX) {
    try {
        Json::parse_or_throw(text, Order::sorted, deepest);
    } catch (const JsonError& error) {
        return error.what();
    }
    return {};
}

template <class Work>
std::string refusal_of(const Work& work) {
    try {
        work();
    } catch (const JsonError& error) {
        return error.what();
    }
    return {};
}

TEST(Json, IsWrittenAsItWasRead) {
    for (const auto* text :
         {"null", "true", "false", "0", "-1", "1.5", "\"\"", "\"a b\"", "[]", "{}",
          R"([1,[2,[]],{"a":{}}])", R"({"a":[null,true],"b":{"c":"d"}})"}) {
        EXPECT_EQ(again(text), text);
    }
    EXPECT_EQ(again(" [ 1 , 2 ] \n"), "[1,2]");
    EXPECT_EQ(again("\xef\xbb\xbf{}"), "{}");
}

TEST(Json, HasALineForEachValueWhereItIsIndented) {
    EXPECT_EQ(again(R"({"b":[1,[],{}],"a":{"c":null}})", Order::given, 1),
              "{\n \"b\": [\n  1,\n  [],\n  {}\n ],\n \"a\": {\n  \"c\": null\n }\n}");
    EXPECT_EQ(again("[1,2]", Order::sorted, 0), "[\n1,\n2\n]");
    EXPECT_EQ(again("[1,[2]]", Order::sorted, 4), "[\n    1,\n    [\n        2\n    ]\n]");
    EXPECT_EQ(again("[]", Order::sorted, 2), "[]");
}

TEST(Json, MembersAreInTheOrderOfTheirKeysOrAsGiven) {
    constexpr auto text = R"({"b":1,"a":2,"ä":3,"B":4,"":5})";
    EXPECT_EQ(again(text), R"({"":5,"B":4,"a":2,"b":1,"ä":3})");
    EXPECT_EQ(again(text, Order::given), text);
    for (const auto order : {Order::sorted, Order::given}) {
        auto json = Json::object(order);
        json["z"] = 1;
        json["a"] = Json::object(order, {{"y", true}, {"x", "text"}});
        json["z"] = nullptr;
        EXPECT_EQ(json.dump(), order == Order::sorted ? R"({"a":{"x":"text","y":true},"z":null})"
                                                      : R"({"z":null,"a":{"y":true,"x":"text"}})");
    }
}

TEST(Json, TheLastOfMembersWithTheSameKeyCounts) {
    constexpr auto text = R"({"b":1,"a":{"x":1},"b":2,"a":{"y":1},"c":3,"b":4})";
    EXPECT_EQ(again(text), R"({"a":{"y":1},"b":4,"c":3})");
    EXPECT_EQ(again(text, Order::given), R"({"b":4,"a":{"y":1},"c":3})");
}

TEST(Json, ObjectsMayHaveManyMembers) {
    constexpr int many = 5000;
    const auto key = [](int i) { return std::to_string(i * 7919 % many); };
    for (const auto order : {Order::sorted, Order::given}) {
        auto built = Json::object(order);
        std::string text = "{";
        for (int i = 0; i < 2 * many; ++i) {  // each of them twice
            text += (i > 0 ? ",\"" : "\"") + key(i % many) + "\":" + std::to_string(i);
            built[key(i % many)] = i;
        }
        const auto json = *Json::parse(text + "}", order);
        ASSERT_EQ(json.size(), many);
        EXPECT_EQ(json.dump(), built.dump());
        EXPECT_EQ(Json(json).dump(), built.dump());
        for (int i = 0; i < many; ++i) {
            ASSERT_NE(json.find(key(i)), nullptr);
            EXPECT_EQ(*json.find(key(i)), many + i);
            EXPECT_EQ(built.at(key(i)), many + i);
        }
        EXPECT_EQ(json.find("none"), nullptr);
        EXPECT_EQ(json.items().begin()->key, order == Order::sorted ? "0" : key(0));
    }
}

TEST(Json, NumbersAreAsExactAs64BitsAllow) {
    EXPECT_EQ(again("[18446744073709551615,-9223372036854775808]"),
              "[18446744073709551615,-9223372036854775808]");
    EXPECT_EQ(again("[18446744073709551616,-9223372036854775809]"),
              "[1.8446744073709552e+19,-9.223372036854776e+18]");
    EXPECT_EQ(again("[-0,-0.0,1.0,1e3,1E-7,0.1,123456789012345678901234567890]"),
              "[0,-0.0,1.0,1000.0,1e-07,0.1,1.2345678901234568e+29]");
    EXPECT_EQ(again("1e999"), "no JSON");
    EXPECT_EQ(refusal("1e999"), "number overflow parsing '1e999'");
    EXPECT_TRUE(Json::parse("0")->is_natural());
    EXPECT_FALSE(Json::parse("-1")->is_natural());
    EXPECT_TRUE(Json::parse("-1")->is_whole());
    EXPECT_FALSE(Json::parse("1.0")->is_whole());
    EXPECT_TRUE(Json(1).is_natural());
    EXPECT_EQ(Json(std::uint64_t{1} << 63).dump(), "9223372036854775808");
    EXPECT_EQ(Json(1.0F / 3).dump(), "0.3333333432674408");
    EXPECT_EQ(Json(5e-324).dump(), "5e-324");
    EXPECT_EQ(Json(1.7976931348623157e308).dump(), "1.7976931348623157e+308");
}

TEST(Json, NumbersThatAreNotFiniteAreNull) {
    constexpr auto infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(Json::array({std::numeric_limits<double>::quiet_NaN(), infinity, -infinity}).dump(),
              "[null,null,null]");
}

TEST(Json, NumbersConvertAsFarAsTheyFit) {
    EXPECT_EQ(Json::parse("2.9")->int64(), 2);
    EXPECT_EQ(Json::parse("-2.9")->int64(), -2);
    EXPECT_EQ(Json::parse("-1")->uint64(), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(Json::parse("18446744073709551615")->int64(), -1);
    EXPECT_EQ(Json::parse("7")->number(), 7.0);
    EXPECT_EQ(Json::parse("-7")->number(), -7.0);
    EXPECT_THROW(Json::parse("1e19")->int64(), JsonError);
    EXPECT_EQ(Json::parse("1e19")->uint64(), 10'000'000'000'000'000'000U);
    EXPECT_THROW(Json::parse("1e20")->uint64(), JsonError);
    EXPECT_THROW(Json(std::numeric_limits<double>::quiet_NaN()).uint64(), JsonError);
}

TEST(Json, TextsAreEscaped) {
    EXPECT_EQ(again(R"("\"\\\/\b\f\n\r\t\u0001\u001f\u007f\u00e4\ud83d\ude00")"),
              "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7fä😀\"");
    EXPECT_EQ(json_quoted("a\"b"), R"("a\"b")");
    EXPECT_EQ(json_quoted(std::string_view("\0", 1)), "\"\\u0000\"");
    EXPECT_EQ(dump_json("a\"b"), "a\"b");
    EXPECT_EQ(dump_json(Json::array({"a"})), "[\"a\"]");
}

TEST(Json, InvalidUtf8IsReplacedWhereItIsWrittenAndRefusedWhereItIsRead) {
    EXPECT_EQ(Json("a\xff\x62").dump(), "\"a\uFFFDb\"");
    EXPECT_EQ(Json("\xc3").dump(), "\"\uFFFD\"");
    EXPECT_EQ(Json("\xe2\x82z\xf0\x9f").dump(), "\"\uFFFDz\uFFFD\"");
    EXPECT_EQ(Json::object(Order::given, {{"\x80", 1}}).dump(), "{\"\uFFFD\":1}");
    EXPECT_EQ(again("\"\xff\""), "no JSON");
    EXPECT_EQ(again(R"("\ud800")"), "no JSON");
}

TEST(Json, SaysWhereATextIsNone) {
    EXPECT_EQ(refusal(""),
              "parse error at line 1, column 1: syntax error while parsing value - unexpected end "
              "of input; expected '[', '{', or a literal");
    EXPECT_EQ(refusal("{\n \"a\": ]"),
              "parse error at line 2, column 7: syntax error while parsing value - unexpected ']'; "
              "expected '[', '{', or a literal");
    EXPECT_THAT(refusal("[1] 2"), HasSubstr("line 1, column 5: syntax error while parsing value - "
                                            "unexpected number literal; expected end of input"));
    for (const auto* text : {"", "[", "{\"a\"}", "[1,]", "{\"a\":1,}", "01", "nul", "'a'", "NaN",
                             "[1]]", "// a\n1", "\"\n\"", "{1:2}"}) {
        EXPECT_EQ(again(text), "no JSON") << text;
    }
    EXPECT_FALSE(Json::parse({}));
}

TEST(Json, MayBeNestedDeep) {
    constexpr std::size_t deep = TROCAR_SANITIZED != 0 ? 100'000 : 1'000'000;
    const auto text = std::string(deep, '[') + std::string(deep, ']');
    EXPECT_FALSE(Json::parse(std::string(deep, '[')));
    auto json = *Json::parse(text);
    const auto copy = json;
    json = nullptr;
    EXPECT_EQ(copy.dump(), text);
    EXPECT_GT(copy.dump(0).size(), text.size());
    std::string objects;
    for (std::size_t i = 0; i < deep; ++i) {
        objects += R"({"a":)";
    }
    objects += '1' + std::string(deep, '}');
    EXPECT_EQ(again(objects), objects);
    EXPECT_EQ(again(objects, Order::given), objects);
}

TEST(Json, MayBeRefusedWhereItIsNestedTooDeep) {
    EXPECT_EQ(refusal("[[]]", 1), "");
    EXPECT_EQ(refusal("[[1]]", 2), "");
    EXPECT_EQ(refusal("[[1]]", 1), "it is nested too deep");
    EXPECT_EQ(refusal("[[[]]]", 1), "it is nested too deep");
    EXPECT_EQ(refusal(R"({"a":{"b":1}})", 1), "it is nested too deep");
    EXPECT_EQ(refusal(R"({"a":{}})", 1), "");
}

TEST(Json, ReadersSayWhatTheyNeed) {
    const auto json = *Json::parse(R"({"text":"a","list":[1,"b"],"object":{},"none":null})");
    EXPECT_EQ(refusal_of([&] { json.at("other"); }), "key 'other' not found");
    EXPECT_EQ(refusal_of([&] { json.at("list").at("a"); }), "cannot use at() with array");
    EXPECT_EQ(refusal_of([&] { json.at("list").at(2); }), "array index 2 is out of range");
    EXPECT_EQ(refusal_of([&] { json.at("list")[0].string(); }),
              "type must be string, but is number");
    EXPECT_EQ(refusal_of([&] { json.at("text").number(); }), "type must be number, but is string");
    EXPECT_EQ(refusal_of([&] { json.at("text").boolean(); }),
              "type must be boolean, but is string");
    EXPECT_EQ(refusal_of([&] { json.at("list").strings(); }), "type must be string, but is number");
    EXPECT_EQ(refusal_of([&] { json.at("none").int64s(); }), "type must be array, but is null");
    EXPECT_EQ(refusal_of([&] { json.at("object").begin(); }), "type must be array, but is object");
    EXPECT_EQ(refusal_of([&] { json.at("list").items(); }), "type must be object, but is array");
    EXPECT_EQ(refusal_of([&] { json.at("text").string_or("a", ""); }),
              "cannot use value() with string");
    EXPECT_EQ(json.string_or("text", "b"), "a");
    EXPECT_EQ(json.string_or("missing", "b"), "b");
    EXPECT_EQ(json.number_or("missing", 3), 3);
    EXPECT_THROW(json.number_or("text", 3), JsonError);
    EXPECT_EQ(json.at("text").find("a"), nullptr);
    EXPECT_EQ(json.at("none").begin(), json.at("none").end());
    EXPECT_TRUE(json.at("none").empty());
    EXPECT_EQ(json.at("text").size(), 1U);
}

TEST(Json, ComparesWithTextsAndNumbers) {
    EXPECT_EQ(Json("a"), "a");
    EXPECT_NE(Json("a"), "b");
    EXPECT_NE(Json(1), "1");
    EXPECT_EQ(Json(1.0), 1);
    EXPECT_EQ(Json(-1), -1);
    EXPECT_NE(Json("1"), 1);
    EXPECT_NE(Json(true), 1);
}

TEST(Json, IsMadeOfPlainValues) {
    EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).dump(), R"(["a","b"])");
    EXPECT_EQ(Json(std::vector<std::int64_t>{1, -1}).dump(), "[1,-1]");
    EXPECT_EQ(Json(std::vector<std::uint64_t>()).dump(), "[]");
    EXPECT_EQ(Json::array_of(std::vector<double>{0.5, 1}).dump(), "[0.5,1.0]");
}

TEST(Json, BecomesWhatIsAddedToIt) {
    Json json;
    json["list"].push_back(1);
    json["list"].push_back("a");
    json["list"][0] = Json::array({true, nullptr});
    EXPECT_EQ(json.dump(), R"({"list":[[true,null],"a"]})");
    EXPECT_THROW(json.push_back(1), JsonError);
    EXPECT_THROW(json["list"]["a"], JsonError);
    json = Json(json.at("list").at(0));  // a part of itself
    EXPECT_EQ(json.dump(), "[true,null]");
    const auto moved = std::move(json);
    EXPECT_EQ(moved.size(), 2U);
}

TEST(JsonPlaces, SayWhereAValueIsNotAsItShouldBe) {
    const JsonPlace place("'file'");
    const auto json =
        *Json::parse(R"({"a":{"b":"text"},"n":18446744073709551615,"l":[],"no":null})");
    const auto said = [](const auto& work) {
        try {
            work();
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(place.text(place.object(json, "a"), "b"), "text");
    EXPECT_EQ(place.text(json, "missing", "else"), "else");
    EXPECT_TRUE(place.member(json, "missing").is_null());
    EXPECT_TRUE(place.list(json, "missing").is_array());
    EXPECT_TRUE(place.object(json, "no").is_object());
    EXPECT_FALSE(place.flag(json, "a"));
    EXPECT_EQ(place.choice(*Json::parse(R"({"x":null,"y":1})")).kind, "y");
    EXPECT_EQ(place.choice(*Json::parse("{}")).value, nullptr);
    EXPECT_EQ(said([&] { place.in("op 1").text(json, "a"); }), "'file': op 1: 'a' is no text");
    EXPECT_EQ(said([&] { place.text(json, "l", ""); }), "'file': 'l' is no text");
    EXPECT_EQ(said([&] { place.list(json, "a"); }), "'file': 'a' is no list");
    EXPECT_EQ(said([&] { place.object(json, "l"); }), "'file': 'l' is no object");
    EXPECT_EQ(said([&] { place.member(json.at("l"), "x"); }),
              "'file': what should hold 'x' is no object");
    EXPECT_EQ(said([&] { place.integer(json.at("n"), "a size"); }),
              "'file': a size is no whole number of 64 bits");
    EXPECT_EQ(said([&] { place.choice(json); }), "'file': a value is both 'a' and 'l'");
}

}  // namespace
}  // namespace trocar
