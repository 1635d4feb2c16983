#include "store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>

#include "trocar/error.h"

namespace trocar::store {

namespace {

// A reader may hold the file for as long as it takes to read all of it.
constexpr int patience_ms = 60'000;

bool is_full(int code, int system) {
    return (code & 0xff) == SQLITE_FULL ||
           ((code & 0xff) == SQLITE_IOERR &&
            (system == ENOSPC || system == EDQUOT || system == EFBIG));
}

// What the system said: SQLite asks it again while it undoes what failed, so the file knows better.
int system_error(sqlite3* connection) {
    int last = 0;
    sqlite3_file_control(connection, nullptr, SQLITE_FCNTL_LAST_ERRNO, &last);
    return last != 0 ? last : sqlite3_system_errno(connection);
}

int flags_of(Database::Mode mode) {
    // Also for reading: what a killed process left half done is undone first.
    return SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
           (mode == Database::Mode::create ? SQLITE_OPEN_CREATE : 0);
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Statement::Statement(const Database& database, sqlite3_stmt* statement)
    : database_(&database), statement_(statement) {}

Statement& Statement::bind(int place, std::int64_t value) {
    sqlite3_bind_int64(statement_.get(), place + 1, value);
    return *this;
}

Statement& Statement::bind(int place, std::uint64_t value) {
    return bind(place, std::bit_cast<std::int64_t>(value));
}

Statement& Statement::bind(int place, double value) {
    sqlite3_bind_double(statement_.get(), place + 1, value);
    return *this;
}

Statement& Statement::bind(int place, std::string_view text) {
    sqlite3_bind_text64(statement_.get(), place + 1, text.data() ? text.data() : "", text.size(),
                        SQLITE_STATIC, SQLITE_UTF8);
    return *this;
}

Statement& Statement::bind(int place, std::span<const std::byte> bytes) {
    // A null pointer would be NULL.
    sqlite3_bind_blob64(statement_.get(), place + 1,
                        bytes.empty() ? static_cast<const void*>("") : bytes.data(), bytes.size(),
                        SQLITE_STATIC);
    return *this;
}

Statement& Statement::bind_null(int place) {
    sqlite3_bind_null(statement_.get(), place + 1);
    return *this;
}

bool Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code != SQLITE_DONE) {
        database_->fail(code);
    }
    return false;
}

void Statement::run() {
    while (step()) {
    }
    restart();
}

void Statement::restart() {
    sqlite3_reset(statement_.get());
    sqlite3_clear_bindings(statement_.get());
}

int Statement::columns() const {
    return sqlite3_column_count(statement_.get());
}

std::string Statement::column_name(int place) const {
    return sqlite3_column_name(statement_.get(), place);
}

Statement::Kind Statement::kind(int place) const {
    switch (sqlite3_column_type(statement_.get(), place)) {
        case SQLITE_INTEGER:
            return Kind::integer;
        case SQLITE_FLOAT:
            return Kind::number;
        case SQLITE_TEXT:
            return Kind::text;
        case SQLITE_BLOB:
            return Kind::bytes;
        default:
            return Kind::null;
    }
}

std::int64_t Statement::integer(int place) const {
    return sqlite3_column_int64(statement_.get(), place);
}

double Statement::number(int place) const {
    return is_null(place) ? std::numeric_limits<double>::quiet_NaN()
                          : sqlite3_column_double(statement_.get(), place);
}

std::string Statement::text(int place) const {
    const auto* at = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), place));
    return at ? std::string(at,
                            static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), place)))
              : std::string();
}

std::span<const std::byte> Statement::bytes(int place) const {
    const auto* at = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), place));
    return {at, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), place))};
}

void Database::Close::operator()(sqlite3* connection) const {
    sqlite3_close_v2(connection);
}

Database::Database(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(path_.c_str(), &connection, flags_of(mode), nullptr);
    connection_.reset(connection);
    if (code != SQLITE_OK) {
        fail(code);
    }
    sqlite3_extended_result_codes(connection, 1);
    sqlite3_busy_timeout(connection, patience_ms);
    // A stranger's file must not run functions of ours through its views and triggers.
    sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    if (mode == Mode::read) {
        run("PRAGMA query_only = 1");
    } else {
        run("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA");
    }
}

void Database::fail(int code) const {
    const int system = system_error(connection_.get());
    const auto what = path_.string();
    if (is_full(code, system)) {
        throw Error(Fault::input, fmt::format("cannot write '{}': the disk is full", what),
                    "all that was committed is in the store; free some space and resume");
    }
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            throw Error(Fault::input, fmt::format("'{}' is in use by another process", what),
                        "wait until that one has ended");
        case SQLITE_NOTADB:
            throw Error(Fault::input, fmt::format("'{}' is not the store of a campaign", what));
        case SQLITE_CORRUPT:
            throw Error(Fault::input, fmt::format("the store '{}' is damaged", what),
                        "`sqlite3 FILE .recover` reads what is left");
        case SQLITE_CANTOPEN:
            throw Error(Fault::input,
                        fmt::format("cannot open '{}': {}", what,
                                    system ? std::strerror(system) : "unknown cause"));
        case SQLITE_READONLY:
            throw Error(Fault::input, fmt::format("cannot write '{}': it is read-only", what));
        case SQLITE_IOERR:
            throw Error(
                Fault::input,
                fmt::format("cannot read or write '{}': {}", what,
                            system ? std::strerror(system) : sqlite3_errmsg(connection_.get())),
                "all that was committed is in the store");
        case SQLITE_NOMEM:
            throw std::bad_alloc();
        default:
            throw Error(Fault::input, fmt::format("the store '{}' cannot be used: {}", what,
                                                  connection_ ? sqlite3_errmsg(connection_.get())
                                                              : sqlite3_errstr(code)));
    }
}

void Database::run(const std::string& sql) {
    const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) {
        fail(code);
    }
}

Statement Database::prepare(std::string_view sql) const {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                        &statement, nullptr);
    if (code != SQLITE_OK) {
        fail(code);
    }
    return {*this, statement};
}

std::int64_t Database::integer(const std::string& sql) const {
    auto statement = prepare(sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Database::changes() const {
    return sqlite3_changes(connection_.get());
}

bool is_sqlite(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string head(16, ' ');
    file.read(head.data(), 16);
    return file.gcount() == 16 && head == std::string("SQLite format 3\0", 16);
}

std::string now() {
    const std::time_t time = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

Transaction::Transaction(Database& database) : database_(&database) {
    database.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
    if (database_) {
        try {
            database_->run("ROLLBACK");
        } catch (const std::exception&) {
            // SQLite has rolled back by itself after the failure, or does when it opens the file.
        }
    }
}

void Transaction::commit() {
    database_->run("COMMIT");
    database_ = nullptr;
}

}  // namespace trocar::store
