#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "reports/text/paint.h"
#include "util/display.h"
#include "util/text.h"

namespace trocar::text {

namespace {

constexpr std::size_t gap = 2;           // columns between columns
constexpr int deepest = 16;              // levels of a tree that are drawn
constexpr std::size_t comfortable = 20;  // a text is not cut below this to keep an optional column
constexpr std::size_t comfortable_tree = 30;
constexpr std::size_t narrowest_title = 8;
constexpr std::size_t least = 8;  // a text is not cut below this at all

// The lines from a row of a tree to its parent: "│  ├─ ". One per row, in order.
std::vector<std::string> guides(const std::vector<Row>& rows) {
    std::vector<std::string> all(rows.size());
    std::vector<bool> goes_on(deepest + 1, false);  // by depth: another row of it follows below
    for (std::size_t i = rows.size(); i-- > 0;) {
        const auto depth = static_cast<std::size_t>(std::clamp(rows[i].depth, 0, deepest));
        for (std::size_t level = 1; level < depth; ++level) {
            all[i] += goes_on[level] ? "│  " : "   ";
        }
        if (depth > 0) {
            all[i] += goes_on[depth] ? "├─ " : "└─ ";
        }
        goes_on[depth] = true;
        std::fill(goes_on.begin() + static_cast<std::ptrdiff_t>(depth) + 1, goes_on.end(), false);
    }
    return all;
}

struct Laid {
    const Column* column = nullptr;
    std::vector<std::string> texts;  // one per row
    std::vector<std::string> title;  // lines
    bool left = false;
    bool shrinks = false;     // a text: may be cut
    std::size_t width = 0;    // natural at first, then what it gets
    std::size_t floor = 0;    // the least width that is still comfortable
    std::size_t hardest = 0;  // the least width at all
};

bool is_text(const Cell& cell) {
    return cell.value.index() >= 4;
}

// A title takes as many lines as keep it from widening its column.
std::vector<std::string> title_lines(const std::string& title, std::size_t content) {
    if (display_width(title) <= content) {
        return {title};
    }
    std::size_t widest_word = 0;
    for (const auto& word : wrap(title, 1)) {
        widest_word = std::max(widest_word, display_width(word));
    }
    return wrap(title, std::max({content, widest_word, narrowest_title}));
}

// Numbers with units line up at the digits: "512 B  " above "97.5 MiB".
void align_units(std::vector<std::string>& texts) {
    const auto unit_of = [](const std::string& text) {
        const auto space = text.rfind(' ');
        return space == std::string::npos ? std::string::npos : text.size() - space - 1;
    };
    const auto columns_of = [&](const std::string& text) {
        const auto bytes = unit_of(text);
        return bytes == std::string::npos ? std::size_t{0}
                                          : 1 + display_width(text.substr(text.size() - bytes));
    };
    std::size_t widest = 0;
    for (const auto& text : texts) {
        widest = std::max(widest, columns_of(text));
    }
    for (auto& text : texts) {
        if (!text.starts_with("–")) {
            text.append(widest - columns_of(text), ' ');
        }
    }
}

bool has_units(Show how) {
    return how == Show::compact || how == Show::bytes || how == Show::seconds ||
           how == Show::nanoseconds;
}

Laid lay(const Table& table, std::size_t index, const std::vector<std::string>& tree,
         const Footnotes& notes) {
    Laid laid;
    laid.column = &table.columns[index];
    laid.left = laid.column->left || laid.column->tree;
    std::size_t content = 1;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const auto& cells = table.rows[i].cells;
        const auto cell = index < cells.size() ? cells[index] : Cell("");
        laid.texts.push_back(cell_text(cell, laid.column->show, notes));
        laid.shrinks = laid.shrinks || is_text(cell);
    }
    laid.left = laid.left || laid.shrinks;
    if (!laid.left && has_units(laid.column->show)) {
        align_units(laid.texts);
    }
    for (std::size_t i = 0; i < laid.texts.size(); ++i) {
        const auto guide = laid.column->tree ? display_width(tree[i]) : 0;
        content = std::max(content, guide + display_width(laid.texts[i]));
    }
    laid.title = title_lines(printable(laid.column->title), content);
    std::size_t title = 0;
    for (const auto& line : laid.title) {
        title = std::max(title, display_width(line));
    }
    laid.width = std::max(content, title);
    const auto ease = laid.column->tree ? comfortable_tree : comfortable;
    laid.floor = laid.shrinks ? std::min(laid.width, std::max(title, ease)) : laid.width;
    laid.hardest = laid.shrinks ? std::min(laid.width, std::max(title, least)) : laid.width;
    return laid;
}

template <class Width>
std::size_t total(const std::vector<Laid>& columns, Width width) {
    return std::accumulate(columns.begin(), columns.end(),
                           columns.empty() ? 0 : gap * (columns.size() - 1),
                           [&](std::size_t sum, const Laid& laid) { return sum + width(laid); });
}

// Takes columns away from the texts, the widest first, until the table fits or nothing is left
// above `bound`.
void shrink(std::vector<Laid>& columns, std::size_t width, std::size_t Laid::*bound) {
    for (auto now = total(columns, [](const Laid& c) { return c.width; }); now > width; --now) {
        Laid* widest = nullptr;
        for (auto& laid : columns) {
            if (laid.width > laid.*bound && (!widest || laid.width > widest->width)) {
                widest = &laid;
            }
        }
        if (!widest) {
            return;
        }
        --widest->width;
    }
}

// Makes the table fit: first without the optional columns, then with shorter texts. Says whether
// columns were left out.
bool fit(std::vector<Laid>& columns, std::size_t width) {
    bool left_out = false;
    while (total(columns, [](const Laid& c) { return c.floor; }) > width) {
        // Of those with the highest number the last.
        auto victim = columns.end();
        for (auto at = columns.begin(); at != columns.end(); ++at) {
            if (at->column->optional > 0 &&
                (victim == columns.end() || at->column->optional >= victim->column->optional)) {
                victim = at;
            }
        }
        if (victim == columns.end()) {
            break;
        }
        columns.erase(victim);
        left_out = true;
    }
    shrink(columns, width, &Laid::floor);
    shrink(columns, width, &Laid::hardest);
    return left_out;
}

struct Layout {
    std::vector<Laid> columns;
    Footnotes notes;
};

Layout lay_out(const Table& table, const std::vector<std::string>& tree, const Style& style) {
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (!table.columns[i].hidden) {
            shown.push_back(i);
        }
    }
    for (;;) {
        Layout layout{{}, Footnotes(style.ascii)};
        for (const auto& row : table.rows) {
            for (const auto i : shown) {
                if (i < row.cells.size()) {
                    layout.notes.collect(row.cells[i]);
                }
            }
        }
        for (const auto i : shown) {
            layout.columns.push_back(lay(table, i, tree, layout.notes));
        }
        if (style.width == 0 || !fit(layout.columns, style.width)) {
            return layout;
        }
        // What is left out needs no footnotes, and theirs made the others wider: once more without.
        shown.clear();
        for (const auto& laid : layout.columns) {
            shown.push_back(static_cast<std::size_t>(laid.column - table.columns.data()));
        }
    }
}

std::string aligned(std::string_view text, const Laid& laid) {
    return laid.left ? pad_right(text, laid.width) : pad_left(text, laid.width);
}

void append_header(std::string& out, const std::vector<Laid>& columns, const Paint& paint) {
    std::size_t height = 0;
    for (const auto& laid : columns) {
        height = std::max(height, laid.title.size());
    }
    for (std::size_t line = 0; line < height; ++line) {
        std::string text;
        for (const auto& laid : columns) {
            const auto above = height - laid.title.size();
            text += aligned(line < above ? "" : laid.title[line - above], laid);
            text.append(gap, ' ');
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += paint.bold(text) + '\n';
    }
}

std::string cell_in(const Laid& laid, std::size_t row, const std::vector<std::string>& tree,
                    const Paint& paint) {
    const auto& text = laid.texts[row];
    if (!laid.column->tree) {
        return aligned(ellipsis(text, laid.width), laid);
    }
    const auto guide = display_width(tree[row]);
    if (guide + 4 > laid.width) {
        return aligned(ellipsis(tree[row] + text, laid.width), laid);
    }
    return paint.dim(tree[row]) + pad_right(ellipsis(text, laid.width - guide), laid.width - guide);
}

// Where the totals begin: the strong rows at the end, set off by a rule. rows.size(): nowhere.
std::size_t totals_from(const std::vector<Row>& rows) {
    auto at = rows.size();
    while (at > 0 && rows[at - 1].strong) {
        --at;
    }
    return at == 0 ? rows.size() : at;
}

// A sentence that ends a row and is too long for its column goes on below; a word is cut. Not in
// a tree, whose lines would be torn.
std::vector<std::string> prose_in(const std::vector<Laid>& columns, std::size_t row) {
    const auto& last = columns.back();
    const bool tree = std::any_of(columns.begin(), columns.end(),
                                  [](const Laid& laid) { return laid.column->tree; });
    if (tree || !last.shrinks || display_width(last.texts[row]) <= last.width) {
        return {};
    }
    auto lines = wrap(last.texts[row], last.width);
    for (auto& line : lines) {
        line = ellipsis(line, last.width);
    }
    return lines;
}

void append_line(std::string& out, std::string& line, bool strong, const Paint& paint) {
    line.erase(line.find_last_not_of(' ') + 1);
    out += (strong ? paint.bold(line) : line) + '\n';
}

void append_rows(std::string& out, const Table& table, const std::vector<Laid>& columns,
                 const std::vector<std::string>& tree, const Paint& paint) {
    const auto whole = total(columns, [](const Laid& c) { return c.width; });
    std::string rule;
    for (std::size_t i = 0; i < whole; ++i) {
        rule += "─";
    }
    rule = paint.dim(rule) + '\n';
    out += rule;
    const auto totals = totals_from(table.rows);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        if (row == totals) {
            out += rule;
        }
        const Paint emphasis = table.rows[row].strong ? Paint{} : paint;
        const auto prose = prose_in(columns, row);
        std::string line;
        for (const auto& laid : columns) {
            const bool wrapped = !prose.empty() && &laid == &columns.back();
            line += wrapped ? prose.front() : cell_in(laid, row, tree, emphasis);
            line.append(gap, ' ');
        }
        append_line(out, line, table.rows[row].strong, paint);
        for (std::size_t i = 1; i < prose.size(); ++i) {
            line = std::string(whole - columns.back().width, ' ') + prose[i];
            append_line(out, line, table.rows[row].strong, paint);
        }
    }
}

std::string not_shown(const Table& table, const std::vector<Laid>& columns) {
    std::vector<std::string> titles;
    for (const auto& column : table.columns) {
        if (!column.hidden && std::none_of(columns.begin(), columns.end(), [&](const Laid& laid) {
                return laid.column == &column;
            })) {
            titles.push_back(printable(column.title));
        }
    }
    return titles.empty() ? std::string()
                          : fmt::format("not shown: {}; --json or a wider terminal has all",
                                        join(titles, ", "));
}

}  // namespace

std::string write_table(const Table& table, const Style& style) {
    const Paint paint{style.colour};
    std::string out;
    const auto below = [&](const std::string& text) {
        out += text.empty() ? text : paragraph(text, style.width, paint);
    };
    if (!table.title.empty()) {
        out += paint.bold(printable(table.title)) + '\n';
    }
    if (table.rows.empty()) {
        out += "none\n";
    } else {
        const auto tree = guides(table.rows);
        const auto layout = lay_out(table, tree, style);
        append_header(out, layout.columns, paint);
        append_rows(out, table, layout.columns, tree, paint);
        out += layout.notes.below(style.width, paint);
        below(not_shown(table, layout.columns));
    }
    below(printable(table.note));
    return out;
}

}  // namespace trocar::text
