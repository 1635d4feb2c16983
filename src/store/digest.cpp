#include <bit>
#include <cmath>

#include "store/body.h"
#include "store/rows.h"
#include "util/sha256.h"

namespace trocar {

namespace {

using store::Statement;

// Adds a value with its kind and length: no two rows read the same.
class Digest {
public:
    void add(const Statement& row, int place) {
        const auto kind = row.kind(place);
        number(static_cast<std::uint64_t>(kind));
        switch (kind) {
            case Statement::Kind::null:
                break;
            case Statement::Kind::integer:
                number(row.natural(place));
                break;
            case Statement::Kind::number:
                number(std::bit_cast<std::uint64_t>(row.number(place)));
                break;
            case Statement::Kind::text:
            case Statement::Kind::bytes:
                bytes(row.bytes(place));
                break;
        }
    }
    void text(const std::string& text) { bytes(std::as_bytes(std::span(text))); }
    std::string hex() { return sha_.hex(); }

private:
    void number(std::uint64_t value) {
        std::byte little[8];
        for (int i = 0; i < 8; ++i) {
            little[i] = static_cast<std::byte>(value >> (8 * i));
        }
        sha_.add(little);
    }
    void bytes(std::span<const std::byte> what) {
        number(what.size());
        sha_.add(what);
    }
    Sha256 sha_;
};

}  // namespace

std::string CampaignStore::digest() const {
    const std::scoped_lock lock(body_->mutex);
    Digest digest;
    for (const char* query :
         {"SELECT hash, seed, model_sha256, data_hash, engine, engine_version, view FROM campaign",
          "SELECT * FROM strata ORDER BY stratum", "SELECT * FROM faults ORDER BY trial",
          "SELECT * FROM results ORDER BY trial, input",
          "SELECT * FROM layer_effects ORDER BY trial, input, tensor, op",
          "SELECT * FROM golden ORDER BY input",
          "SELECT * FROM golden_outputs ORDER BY input, place",
          "SELECT * FROM metrics ORDER BY trial, input, name"}) {
        if (std::string_view(query).find("FROM metrics") != std::string_view::npos &&
            !store::has_metrics(body_->database)) {
            continue;  // not there in stores of the first version
        }
        digest.text(query);
        auto row = body_->database.prepare(query);
        while (row.step()) {
            for (int i = 0; i < row.columns(); ++i) {
                digest.add(row, i);
            }
        }
    }
    return digest.hex();
}

}  // namespace trocar
