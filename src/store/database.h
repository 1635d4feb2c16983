#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace trocar::store {

class Database;

// A statement of SQL, ready to run. Places are counted from 0.
class Statement {
public:
    // What is bound must live until the statement is run.
    Statement& bind(int place, std::int64_t value);
    Statement& bind(int place, std::uint64_t value);  // its bits, where above the largest signed
    Statement& bind(int place, int value) { return bind(place, std::int64_t{value}); }
    Statement& bind(int place, bool value) { return bind(place, std::int64_t{value}); }
    Statement& bind(int place, double value);  // NaN is stored as NULL
    Statement& bind(int place, std::string_view text);
    Statement& bind(int place, std::span<const std::byte> bytes);
    Statement& bind_null(int place);

    bool step();     // false: no row is left
    void run();      // to the end; ready to be bound anew
    void restart();  // ready to be bound anew

    int columns() const;
    std::string column_name(int place) const;
    enum class Kind { null, integer, number, text, bytes };
    Kind kind(int place) const;
    bool is_null(int place) const { return kind(place) == Kind::null; }
    std::int64_t integer(int place) const;
    std::uint64_t natural(int place) const { return static_cast<std::uint64_t>(integer(place)); }
    double number(int place) const;  // NaN where NULL
    std::string text(int place) const;
    // Lives until the next step.
    std::span<const std::byte> bytes(int place) const;

private:
    friend class Database;
    Statement(const Database& database, sqlite3_stmt* statement);
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    const Database* database_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// An open SQLite file. Its failures become Error(input) with the path and the reason.
class Database {
public:
    enum class Mode { create, write, read };
    Database(std::filesystem::path path, Mode mode);

    void run(const std::string& sql);  // statements without answers
    Statement prepare(std::string_view sql) const;
    std::int64_t integer(const std::string& sql) const;  // the one number that it answers
    std::int64_t changes() const;                        // rows of the last insertion

    const std::filesystem::path& path() const { return path_; }
    [[noreturn]] void fail(int code) const;

private:
    struct Close {
        void operator()(sqlite3* connection) const;
    };
    std::filesystem::path path_;
    std::unique_ptr<sqlite3, Close> connection_;
};

// Does the file begin as those of SQLite do? An empty one does not.
bool is_sqlite(const std::filesystem::path& path);

std::string now();  // "2026-11-16T03:44:48Z"

// From here to `commit` all or nothing.
class Transaction {
public:
    explicit Transaction(Database& database);
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();
    void commit();

private:
    Database* database_;
};

}  // namespace trocar::store
