#include "store/row_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "util/report_blocks.h"
#include "util/text.h"

namespace trocar::store {

namespace {

std::string hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const auto byte : bytes) {
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    }
    return text;
}

std::string number_text(double value) {
    return std::isinf(value) ? (value > 0 ? "inf" : "-inf") : exact(value);
}

std::string csv_cell(const Statement& row, int place) {
    switch (row.kind(place)) {
        case Statement::Kind::null:
            return {};
        case Statement::Kind::integer:
            return fmt::format("{}", row.integer(place));
        case Statement::Kind::number:
            return number_text(row.number(place));
        case Statement::Kind::text:
            return csv_field(row.text(place));
        case Statement::Kind::bytes:
            return hex(row.bytes(place));
    }
    return {};
}

std::string json_cell(const Statement& row, int place) {
    switch (row.kind(place)) {
        case Statement::Kind::null:
            return "null";
        case Statement::Kind::integer:
            return fmt::format("{}", row.integer(place));
        case Statement::Kind::number:
            // JSON has no infinity.
            return std::isinf(row.number(place)) ? json_quoted(number_text(row.number(place)))
                                                 : number_text(row.number(place));
        case Statement::Kind::text:
            return json_quoted(row.text(place));
        case Statement::Kind::bytes:
            return json_quoted(hex(row.bytes(place)));
    }
    return "null";
}

}  // namespace

std::string csv_names(const Statement& row) {
    std::string text;
    for (int i = 0; i < row.columns(); ++i) {
        text += i > 0 ? "," : "";
        text += csv_field(row.column_name(i));
    }
    return text;
}

std::string csv_row(const Statement& row) {
    std::string text;
    for (int i = 0; i < row.columns(); ++i) {
        text += i > 0 ? "," : "";
        text += csv_cell(row, i);
    }
    return text;
}

std::string json_row(const Statement& row) {
    std::string text;
    for (int i = 0; i < row.columns(); ++i) {
        text += i > 0 ? "," : "{";
        text += json_quoted(row.column_name(i));
        text += ":";
        text += json_cell(row, i);
    }
    return text + "}";
}

}  // namespace trocar::store
