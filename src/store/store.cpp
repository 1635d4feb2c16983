#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "store/body.h"
#include "store/schema.h"
#include "trocar/error.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar {

namespace {

using store::Database;
namespace fs = std::filesystem;

// Neither text, nor a model, nor an empty file: SQLite itself would take an empty one for its own.
void require_sqlite(const fs::path& path) {
    if (!std::ifstream(path, std::ios::binary)) {
        throw Error(Fault::input,
                    fmt::format("cannot open '{}': {}", path.string(),
                                fs::exists(path) ? "it cannot be read" : "there is no such file"),
                    "`trocar inject MODEL --store FILE` makes one");
    }
    if (!store::is_sqlite(path)) {
        throw Error(Fault::input,
                    fmt::format("'{}' is not the store of a campaign", path.string()));
    }
}

// The first line in which two texts differ: "'seed: 1' there, 'seed: 2' here".
std::string first_difference(const std::string& there, const std::string& here) {
    const auto a = split(there, '\n');
    const auto b = split(here, '\n');
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const auto line = [&](const auto& lines) {
            return i < lines.size() && !trim(lines[i]).empty() ? fmt::format("'{}'", trim(lines[i]))
                                                               : "nothing";
        };
        if (i >= a.size() || i >= b.size() || a[i] != b[i]) {
            return fmt::format("{} in the store, {} here", line(a), line(b));
        }
    }
    return "their hashes differ";
}

std::optional<std::string> entry_of(const std::vector<Property>& context, std::string_view key) {
    for (const auto& property : context) {
        if (property.key == key) {
            return property.value;
        }
    }
    return std::nullopt;
}

bool is_blank(const Database& database) {
    return database.integer("SELECT count(*) FROM sqlite_master") == 0;
}

}  // namespace

namespace store {

void write_header(Database& database, const CampaignHeader& header) {
    auto row = database.prepare(
        "INSERT INTO campaign VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    row.bind(0, std::string_view(header.campaign))
        .bind(1, std::string_view(header.hash))
        .bind(2, header.seed)
        .bind(3, std::string_view(header.model))
        .bind(4, std::string_view(header.model_sha256))
        .bind(5, std::string_view(header.data))
        .bind(6, std::string_view(header.data_hash))
        .bind(7, std::string_view(header.engine))
        .bind(8, std::string_view(header.engine_version))
        .bind(9, std::string_view(header.view))
        .bind(10, header.threads)
        .bind(11, schema_version)
        .bind(12, std::string_view(header.created));
    if (!header.finished.empty()) {
        row.bind(13, std::string_view(header.finished));
    }
    if (!header.decision.empty()) {
        row.bind(14, std::string_view(header.decision))
            .bind(15, std::string_view(header.decision_meaning));
    }
    row.run();
    auto entry = database.prepare("INSERT INTO context (key, value) VALUES (?, ?)");
    for (const auto& property : header.context) {
        entry.bind(0, std::string_view(property.key))
            .bind(1, std::string_view(property.value))
            .run();
    }
}

CampaignHeader read_header(const Database& database) {
    const auto path = database.path().string();
    if (database.integer("PRAGMA application_id") != application) {
        throw Error(Fault::input, fmt::format("'{}' is not the store of a campaign", path),
                    "it is an SQLite file of another program, or of a campaign that was killed "
                    "before it began");
    }
    const auto version = database.integer("PRAGMA user_version");
    if (version > schema_version) {
        throw Error(Fault::unsupported,
                    fmt::format("'{}' was written by a newer trocar: its schema is {}, this one "
                                "knows {}",
                                path, version, schema_version),
                    "use that trocar");
    }
    auto row = database.prepare(
        "SELECT campaign, hash, seed, model, model_sha256, data, data_hash, engine, "
        "engine_version, view, threads, created, finished, " +
        std::string(version < 3 ? "NULL, NULL" : "decision, decision_meaning") + " FROM campaign");
    if (!row.step()) {
        throw Error(Fault::input,
                    fmt::format("the store '{}' is damaged: it has no campaign", path));
    }
    CampaignHeader header;
    header.campaign = row.text(0);
    header.hash = row.text(1);
    header.seed = row.natural(2);
    header.model = row.text(3);
    header.model_sha256 = row.text(4);
    header.data = row.text(5);
    header.data_hash = row.text(6);
    header.engine = row.text(7);
    header.engine_version = row.text(8);
    header.view = row.text(9);
    header.threads = static_cast<int>(row.integer(10));
    header.created = row.text(11);
    header.finished = row.text(12);
    header.decision = row.text(13);
    header.decision_meaning = row.text(14);
    auto entry = database.prepare("SELECT key, value FROM context ORDER BY place");
    while (entry.step()) {
        header.context.push_back({entry.text(0), entry.text(1)});
    }
    return header;
}

}  // namespace store

CampaignStore::CampaignStore(std::unique_ptr<Body> body) : body_(std::move(body)) {}
CampaignStore::CampaignStore(CampaignStore&&) noexcept = default;
CampaignStore& CampaignStore::operator=(CampaignStore&& other) noexcept {
    std::swap(body_, other.body_);
    return *this;
}

CampaignStore::~CampaignStore() {
    if (body_ && !body_->read_only) {
        try {
            body_->commit();
        } catch (const std::exception&) {
            // What is not committed is done again when the campaign is resumed.
        }
    }
}

CampaignStore CampaignStore::create(const fs::path& path, CampaignHeader header,
                                    StoreOptions options) {
    std::error_code ignored;
    if (fs::exists(path, ignored) && fs::file_size(path, ignored) > 0) {
        require_sqlite(path);
    }
    auto body = std::make_unique<Body>(path, Database::Mode::create, options);
    if (!is_blank(body->database)) {
        store::read_header(body->database);  // throws unless a store
        throw Error(Fault::usage, fmt::format("'{}' holds a campaign already", path.string()),
                    "--resume continues it; or name another file");
    }
    if (header.hash.empty()) {
        header.hash = sha256_of(header.campaign);
    }
    if (header.created.empty()) {
        header.created = store::now();
    }
    store::Transaction transaction(body->database);
    body->database.run(store::schema());
    body->database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                   store::application, store::schema_version));
    store::write_header(body->database, header);
    transaction.commit();
    body->header = std::move(header);
    return CampaignStore(std::move(body));
}

CampaignStore CampaignStore::open(const fs::path& path, StoreOptions options) {
    require_sqlite(path);
    auto body = std::make_unique<Body>(path, Database::Mode::write, options);
    body->header = store::read_header(body->database);
    if (const auto version = body->database.integer("PRAGMA user_version");
        version < store::schema_version) {
        throw Error(Fault::unsupported,
                    fmt::format("'{}' was written by an older trocar, whose results are judged "
                                "otherwise: its schema is {}, this one writes {}",
                                path.string(), version, store::schema_version),
                    "begin a new store; `trocar inject report` and `export` still read this one");
    }
    return CampaignStore(std::move(body));
}

CampaignStore CampaignStore::read(const fs::path& path) {
    require_sqlite(path);
    auto body = std::make_unique<Body>(path, Database::Mode::read, StoreOptions{});
    body->header = store::read_header(body->database);
    return CampaignStore(std::move(body));
}

const fs::path& CampaignStore::path() const {
    return body_->database.path();
}

const CampaignHeader& CampaignStore::header() const {
    return body_->header;
}

void CampaignStore::require_same(const CampaignHeader& other) const {
    const auto& own = body_->header;
    const auto refuse = [&](const char* what, const std::string& how) {
        throw Error(Fault::usage,
                    fmt::format("the store '{}' is of another {}: {}", path().string(), what, how),
                    "name another file for this campaign");
    };
    const auto compare = [&](const char* what, const std::string& there, const std::string& here) {
        if (there != here) {
            refuse(what, fmt::format("'{}' in the store, '{}' here", there, here));
        }
    };
    compare("model", own.model_sha256, other.model_sha256);
    compare("set of data", own.data_hash, other.data_hash);
    if (own.hash != (other.hash.empty() ? sha256_of(other.campaign) : other.hash)) {
        refuse("campaign", first_difference(own.campaign, other.campaign));
    }
    if (own.seed != other.seed) {
        refuse("seed", fmt::format("{} in the store, {} here", own.seed, other.seed));
    }
    compare("engine", own.engine, other.engine);
    compare("version of the engine", own.engine_version, other.engine_version);
    compare("view", own.view, other.view);
    if (!other.decision.empty() || !own.decision.empty()) {
        compare("decision", own.decision, other.decision);
    }
    // The graph that an engine deploys is made for the CPU: its faults are not those of another.
    const auto there = entry_of(own.context, "kernels");
    const auto here = entry_of(other.context, "kernels");
    if (own.view == "deployed" && there && here) {
        compare("set of kernels (instructions of the CPU)", *there, *here);
    }
}

}  // namespace trocar
