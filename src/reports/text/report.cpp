#include "trocar/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/text/paint.h"
#include "util/display.h"
#include "util/report_blocks.h"

namespace trocar::text {

void Footnotes::collect(const Cell& cell) {
    if (cell.missing() && !cell.reason.empty() && reasons_.size() <= most &&
        std::find(reasons_.begin(), reasons_.end(), cell.reason) == reasons_.end()) {
        reasons_.push_back(cell.reason);
    }
}

std::string Footnotes::sign(std::size_t index) const {
    static constexpr std::array<const char*, most> superscripts{"¹", "²", "³", "⁴", "⁵"};
    return ascii_ ? fmt::format("[{}]", index + 1) : superscripts[index];
}

std::string Footnotes::mark(const Cell& cell) const {
    if (!cell.missing() || cell.reason.empty() || reasons_.size() > most) {
        return {};
    }
    const auto at = std::find(reasons_.begin(), reasons_.end(), cell.reason);
    return at == reasons_.end() ? "" : sign(static_cast<std::size_t>(at - reasons_.begin()));
}

std::string Footnotes::below(std::size_t width, const Paint& paint) const {
    if (reasons_.size() > most) {
        return paragraph("– unavailable, for many reasons: --json has each", width, paint);
    }
    std::string out;
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
        out += paragraph(fmt::format("{} {}", sign(i), printable(reasons_[i])), width, paint);
    }
    return out;
}

std::string cell_text(const Cell& cell, Show how, const Footnotes& notes) {
    return show(cell, how) + notes.mark(cell);
}

std::string paragraph(std::string_view text, std::size_t width, const Paint& paint) {
    std::string out;
    for (const auto& line : wrap(text, width)) {
        out += paint.dim(line) + '\n';
    }
    return out;
}

namespace {

// The lines of a scalar's value: one per item of a list, and as many as a long text needs.
std::vector<std::string> value_lines(const Scalar& scalar, std::size_t width,
                                     const Footnotes& notes) {
    std::vector<std::string> lines;
    const auto add = [&](const std::string& text) {
        for (auto& line : wrap(text, width)) {
            lines.push_back(std::move(line));
        }
    };
    if (const auto* items = std::get_if<std::vector<std::string>>(&scalar.value.value)) {
        for (const auto& item : *items) {
            add(printable(item));
        }
    } else {
        add(cell_text(scalar.value, scalar.show, notes));
    }
    return lines.empty() ? std::vector<std::string>{"none"} : lines;
}

std::string key_of(const Scalar& scalar) {
    return printable(scalar.title.empty() ? scalar.key : scalar.title);
}

}  // namespace

std::string write_section(std::string_view title, const std::vector<Scalar>& scalars,
                          std::size_t key_width, const Style& style) {
    const Paint paint{style.colour};
    std::string out;
    const std::string indent = title.empty() ? "" : "  ";
    if (!title.empty()) {
        out += paint.bold(printable(title)) + '\n';
    }
    Footnotes notes(style.ascii);
    for (const auto& scalar : scalars) {
        notes.collect(scalar.value);
    }
    const auto margin = indent.size() + key_width + 2;
    const std::string hanging(margin, ' ');
    const auto room = style.width > margin + 20 ? style.width - margin : 0;
    for (const auto& scalar : scalars) {
        auto lines = value_lines(scalar, room, notes);
        auto used = display_width(lines.back());
        if (!scalar.note.empty()) {
            const auto note = printable(scalar.note);
            if (room > 0 && used + 2 + display_width(note) > room) {
                for (const auto& line : wrap(note, room)) {
                    lines.push_back(paint.dim(line));
                }
            } else {
                lines.back() += "  " + paint.dim(note);
            }
        }
        out += indent + pad_right(key_of(scalar), key_width) + "  " + lines[0] + '\n';
        for (std::size_t i = 1; i < lines.size(); ++i) {
            out += hanging + lines[i] + '\n';
        }
    }
    return out + notes.below(style.width, paint);
}

namespace {

// The keys of all sections line up with one another.
std::size_t key_width(const Report& report, bool with_context) {
    std::size_t width = 0;
    const auto widen = [&](const std::vector<Scalar>& scalars) {
        for (const auto& scalar : scalars) {
            width = std::max(width, display_width(key_of(scalar)));
        }
    };
    for (const auto& section : report.sections) {
        widen(section.scalars);
    }
    if (with_context) {
        widen(report.context);
    }
    return std::min(width, std::size_t{28});
}

// Every character has a stand-in of the same width.
std::string to_ascii(std::string text) {
    static constexpr std::array<std::pair<std::string_view, char>, 11> stand_ins{{
        {"├", '|'},
        {"└", '`'},
        {"│", '|'},
        {"─", '-'},
        {"–", '-'},
        {"…", '~'},
        {"×", 'x'},
        {"µ", 'u'},
        {"·", '.'},
        {"→", '>'},
        {"≥", '>'},
    }};
    for (const auto& [character, stand_in] : stand_ins) {
        std::string out;
        std::size_t at = 0;
        for (auto next = text.find(character); next != std::string::npos;
             next = text.find(character, at)) {
            out.append(text, at, next - at);
            out += stand_in;
            at = next + character.size();
        }
        out.append(text, at);
        text = std::move(out);
    }
    return text;
}

std::string write(const Report& report, const Style& style) {
    const Paint paint{style.colour};
    const bool with_context = style.verbosity > 0 && !report.context.empty();
    const auto keys = key_width(report, with_context);
    std::string out;
    const auto append = [&](const std::string& block) {
        if (!block.empty()) {
            out += (out.empty() ? "" : "\n") + block;
        }
    };
    if (with_context) {
        append(write_section("Context", report.context, keys, style));
    }
    for (const auto& block : blocks(report)) {
        if (const auto* section = std::get_if<const Section*>(&block)) {
            append(write_section((*section)->title, (*section)->scalars, keys, style));
        } else {
            append(write_table(*std::get<const Table*>(block), style));
        }
    }
    std::string end;
    if (style.verbosity >= 0) {
        for (const auto& note : report.notes) {
            end += paragraph(printable(note), style.width, Paint{});
        }
    }
    for (const auto& warning : report.warnings) {
        end += paragraph("warning: " + printable(warning), style.width, Paint{});
    }
    if (report.partial) {
        end += paint.bold("Interrupted: this is what there was by then.") + '\n';
    }
    append(end);
    return style.ascii ? to_ascii(std::move(out)) : out;
}

}  // namespace

}  // namespace trocar::text

namespace trocar {

extern const ReportFormat text_report{
    .name = "text",
    .summary = "for a person at a terminal",
    .suffixes = ".txt",
    .write = text::write,
};

}  // namespace trocar
