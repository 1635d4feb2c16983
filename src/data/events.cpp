#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "data/aedat.h"
#include "data/folder.h"
#include "data/source.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar::data {

namespace {

namespace fs = std::filesystem;

struct Recording {
    std::shared_ptr<const MappedFile> file;
    std::vector<EventPacket> packets;
};

// A sample: what happened in a recording from one moment to another.
struct Span {
    std::size_t recording = 0;
    std::int64_t from = 0;  // microseconds
    std::int64_t to = 0;    // the first that is not of it
    std::optional<std::int64_t> label;
    std::size_t index = 0;  // of those of the recording
};

class EventSource final : public Source {
public:
    explicit EventSource(const Preprocess::Events& options) : options_(options) {
        noun = "recording";
    }

    std::size_t size() const override { return spans.size(); }
    RawSample read(std::size_t index) const override;
    std::optional<std::int64_t> label(std::size_t index) const override {
        return spans[index].label;
    }
    std::string name(std::size_t index) const override {
        const auto& span = spans[index];
        return fmt::format("{} {}", recordings[span.recording].file->path().stem().string(),
                           span.index);
    }
    void digest(std::size_t index, Sha256& hash) const override {
        const auto& span = spans[index];
        const auto text = fmt::format("{} {}\n", span.from, span.to);
        hash.add(std::as_bytes(std::span(text)));
        const auto& recording = recordings[span.recording];
        for (const auto& packet : recording.packets) {
            if (packet.last >= span.from && packet.first < span.to) {
                hash.add(
                    recording.file->bytes().subspan(packet.at, packet.events * packet.event_bytes));
            }
        }
    }

    std::vector<Recording> recordings;
    std::vector<Span> spans;

private:
    std::vector<Event> events_of(const Span& span) const;
    Preprocess::Events options_;
};

std::vector<Event> EventSource::events_of(const Span& span) const {
    const auto& recording = recordings[span.recording];
    std::vector<Event> events;
    for (const auto& packet : recording.packets) {
        if (packet.last < span.from || packet.first >= span.to) {
            continue;
        }
        for_each_event(recording.file->bytes(), packet, [&](const Event& event) {
            if (event.microseconds >= span.from && event.microseconds < span.to) {
                events.push_back(event);
            }
        });
    }
    if (options_.equal_counts) {
        std::ranges::stable_sort(events, {}, &Event::microseconds);
    }
    return events;
}

RawSample EventSource::read(std::size_t index) const {
    const auto& span = spans[index];
    const auto events = events_of(span);
    const auto factor = options_.downscale;
    const auto height = options_.sensor.height / factor;
    const auto width = options_.sensor.width / factor;
    auto value = Value::tensor(DType::f32, {options_.steps, 2, height, width});
    auto* numbers = reinterpret_cast<float*>(value.mutable_bytes().data());
    for (std::size_t i = 0; i < events.size(); ++i) {
        const auto& event = events[i];
        if (event.x >= options_.sensor.width || event.y >= options_.sensor.height) {
            throw Error(Fault::input,
                        fmt::format("{} has an event at row {}, column {}, outside a sensor of "
                                    "{}x{}",
                                    quoted(recordings[span.recording].file->path()), event.y,
                                    event.x, options_.sensor.height, options_.sensor.width),
                        "say how large it is: --prep sensor=260x346");
        }
        // In double: a product of two times could run over.
        const double share = options_.equal_counts
                                 ? static_cast<double>(i) / static_cast<double>(events.size())
                                 : static_cast<double>(event.microseconds - span.from) /
                                       static_cast<double>(span.to - span.from);
        const auto step =
            std::min(options_.steps - 1,
                     static_cast<std::int64_t>(share * static_cast<double>(options_.steps)));
        const auto plane = 2 * step + (event.on ? 1 : 0);
        auto& number = numbers[(plane * height + event.y / factor) * width + event.x / factor];
        number = options_.binary ? 1 : number + 1;
    }
    return std::vector<NamedValue>{{"", std::move(value)}};
}

// The rows class,startTime_usec,endTime_usec of a recording; classes are counted from 1 there.
void add_spans(EventSource& source, std::size_t recording, const fs::path& labels) {
    auto rows = read_csv(labels);
    if (!rows.empty() && rows.front().front() == "class") {
        rows.erase(rows.begin());
    }
    std::size_t index = 0;
    for (const auto& row : rows) {
        const auto where = fmt::format("{}, row {}", quoted(labels), index + 1);
        if (row.size() != 3) {
            throw Error(Fault::input,
                        fmt::format("{} has {}, not 3", where, counted(row.size(), "field")),
                        "rows are class,startTime_usec,endTime_usec");
        }
        const auto label = parse_label(row[0], where);
        const auto from = parse_label(row[1], where);
        const auto to = parse_label(row[2], where);
        if (label < 1 || from >= to) {
            throw Error(Fault::input,
                        label < 1
                            ? fmt::format("{} has the class {}", where, label)
                            : fmt::format("{} ends at {}, before its start at {}", where, to, from),
                        "classes are counted from 1, and become labels from 0");
        }
        source.spans.push_back({recording, from, to, label - 1, index++});
    }
}

void add_recording(EventSource& source, const fs::path& path, const fs::path& labels) {
    const auto file = MappedFile::open(path);
    source.recordings.push_back({file, event_packets(file->bytes(), quoted(path))});
    const auto& recording = source.recordings.back();
    const auto number = source.recordings.size() - 1;
    if (is_there(labels)) {
        add_spans(source, number, labels);
        return;
    }
    if (recording.packets.empty()) {
        throw Error(Fault::input, fmt::format("{} holds no polarity events", quoted(path)));
    }
    Span all{number, std::numeric_limits<std::int64_t>::max(), 0, std::nullopt, 0};
    for (const auto& packet : recording.packets) {
        all.from = std::min(all.from, packet.first);
        all.to = std::max(all.to, packet.last + 1);
    }
    source.spans.push_back(all);
}

fs::path labels_of(const fs::path& path) {
    return path.parent_path() / (path.stem().string() + "_labels.csv");
}

// The recordings of a folder: those that trials_to_test.txt or trials_to_train.txt name, else all.
std::vector<std::string> recordings_in(const fs::path& folder, const DataOptions& options) {
    const auto list =
        folder / (wants_train(options) ? "trials_to_train.txt" : "trials_to_test.txt");
    std::vector<std::string> names;
    if (!is_there(list)) {
        for (const auto& name : listing(folder).files) {
            if (has_suffix(name, ".aedat")) {
                names.push_back(name);
            }
        }
        return names;
    }
    for (const auto& line : split(read_file(list), '\n')) {
        std::string name(trim(line));
        if (name.ends_with('\r')) {
            name.pop_back();
        }
        if (name.find('/') != std::string::npos) {
            throw Error(Fault::input,
                        fmt::format("{}: '{}' is not in the folder", quoted(list), name));
        }
        if (!name.empty()) {
            names.push_back(name);
        }
    }
    return names;
}

}  // namespace

std::unique_ptr<Source> open_events(const DataOptions& options) {
    auto source = std::make_unique<EventSource>(options.preprocess.events);
    if (!is_folder(options.path)) {
        add_recording(*source, options.path,
                      options.labels.empty() ? labels_of(options.path) : options.labels);
    } else {
        if (!options.labels.empty()) {
            throw Error(Fault::usage, "each recording of a folder has its own labels",
                        "they stand beside NAME.aedat, in NAME_labels.csv");
        }
        for (const auto& name : recordings_in(options.path, options)) {
            add_recording(*source, options.path / name, labels_of(options.path / name));
        }
    }
    if (source->spans.empty()) {
        throw Error(Fault::input, fmt::format("{} holds no samples", quoted(options.path)),
                    "give .aedat files, with NAME_labels.csv: class,startTime_usec,endTime_usec");
    }
    return source;
}

}  // namespace trocar::data
