#include "trocar/report.h"

#include <fmt/format.h>

#include "util/display.h"
#include "util/report_blocks.h"

namespace trocar {

namespace {

bool is_word(char c) {
    return (c & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// Plain text: nothing in it is taken for markup.
std::string escaped(std::string_view text) {
    const auto plain = printable(text);
    std::string out;
    for (std::size_t i = 0; i < plain.size(); ++i) {
        const char c = plain[i];
        if (c == '<') {
            out += "&lt;";
        } else if (c == '&') {
            out += "&amp;";
        } else if (c == '_') {
            // Between letters an underscore is only an underscore.
            const bool inside =
                i > 0 && i + 1 < plain.size() && is_word(plain[i - 1]) && is_word(plain[i + 1]);
            out += inside ? "_" : "\\_";
        } else if (std::string_view("\\|`*[]~#").find(c) != std::string_view::npos) {
            out += '\\';
            out += c;
        } else {
            out += c;
        }
    }
    return out;
}

std::string cell_text(const Cell& cell, Show how) {
    auto text = escaped(show(cell, how));
    if (cell.missing() && !cell.reason.empty()) {
        text += fmt::format(" ({})", escaped(cell.reason));
    }
    return text;
}

std::string write_scalars(std::string_view title, const std::vector<Scalar>& scalars) {
    std::string out = title.empty() ? "" : fmt::format("## {}\n\n", escaped(title));
    for (const auto& scalar : scalars) {
        out +=
            fmt::format("- **{}**: {}", escaped(scalar.title.empty() ? scalar.key : scalar.title),
                        cell_text(scalar.value, scalar.show));
        out += scalar.note.empty() ? "\n" : fmt::format(" ({})\n", escaped(scalar.note));
    }
    return out;
}

bool is_text(const Table& table, std::size_t column) {
    if (table.columns[column].left || table.columns[column].tree) {
        return true;
    }
    for (const auto& row : table.rows) {
        if (column < row.cells.size() && !row.cells[column].missing()) {
            return row.cells[column].value.index() >= 4;
        }
    }
    return true;
}

std::string write_table(const Table& table) {
    std::string out = table.title.empty() ? "" : fmt::format("## {}\n\n", escaped(table.title));
    std::string rule = "|";
    out += '|';
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (!table.columns[i].hidden) {
            out += fmt::format(" {} |", escaped(table.columns[i].title));
            rule += is_text(table, i) ? ":---|" : "---:|";
        }
    }
    out += '\n' + rule + '\n';
    for (const auto& row : table.rows) {
        out += '|';
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            const auto& column = table.columns[i];
            if (column.hidden) {
                continue;
            }
            auto text = i < row.cells.size() ? cell_text(row.cells[i], column.show) : std::string();
            if (row.strong && !text.empty()) {
                text = fmt::format("**{}**", text);
            }
            out += ' ';
            for (int depth = 0; column.tree && depth < row.depth; ++depth) {
                out += "&emsp;";
            }
            out += text + " |";
        }
        out += '\n';
    }
    if (!table.note.empty()) {
        out += '\n' + escaped(table.note) + '\n';
    }
    return out;
}

std::string write_list(std::string_view title, const std::vector<std::string>& items) {
    std::string out = fmt::format("## {}\n\n", title);
    for (const auto& item : items) {
        out += fmt::format("- {}\n", escaped(item));
    }
    return out;
}

std::string write(const Report& report, const Style&) {
    std::string out = fmt::format("# trocar {}\n", escaped(report.tool));
    const auto append = [&](const std::string& block) { out += '\n' + block; };
    if (report.partial) {
        append("Interrupted: this is what there was by then.\n");
    }
    for (const auto& block : blocks(report)) {
        if (const auto* section = std::get_if<const Section*>(&block)) {
            append(write_scalars((*section)->title, (*section)->scalars));
        } else {
            append(write_table(*std::get<const Table*>(block)));
        }
    }
    if (!report.notes.empty()) {
        append(write_list("Notes", report.notes));
    }
    if (!report.warnings.empty()) {
        append(write_list("Warnings", report.warnings));
    }
    if (!report.context.empty()) {
        append(write_scalars("Context", report.context));
    }
    return out;
}

}  // namespace

extern const ReportFormat markdown_report{
    .name = "markdown",
    .summary = "for documents and pull requests",
    .suffixes = ".md .markdown",
    .write = write,
};

}  // namespace trocar
