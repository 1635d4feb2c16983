#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "store/body.h"
#include "trocar/error.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

// A file that goes unless it is kept; and what SQLite leaves beside it.
class Unfinished {
public:
    explicit Unfinished(fs::path path) : path_(std::move(path)) { remove(); }
    Unfinished(const Unfinished&) = delete;
    Unfinished& operator=(const Unfinished&) = delete;
    ~Unfinished() {
        if (!path_.empty()) {
            remove();
        }
    }
    const fs::path& path() const { return path_; }
    void keep_as(const fs::path& name) {
        std::error_code failure;
        fs::rename(path_, name, failure);
        if (failure) {
            throw Error(Fault::input,
                        fmt::format("cannot write '{}': {}", name.string(), failure.message()));
        }
        path_.clear();
    }

private:
    void remove() const {
        std::error_code ignored;
        fs::remove(path_, ignored);
        fs::remove(path_.string() + "-journal", ignored);
    }
    fs::path path_;
};

// All shards of some number of them are there.
bool all_shards(std::span<const fs::path> files) {
    std::map<std::uint64_t, std::set<std::uint64_t>> parts;
    for (const auto& file : files) {
        for (const auto& run : CampaignStore::read(file).runs()) {
            parts[run.shards].insert(run.shard);
        }
    }
    return parts.empty() || std::any_of(parts.begin(), parts.end(), [](const auto& shards) {
               return shards.second.size() == shards.first;
           });
}

// Earliest beginning, latest end; no end where one is not finished.
void widen(CampaignHeader& header, const CampaignHeader& other) {
    header.created = std::min(header.created, other.created);
    header.finished = header.finished.empty() || other.finished.empty()
                          ? std::string()
                          : std::max(header.finished, other.finished);
}

void copy_sessions(CampaignStore& into, const CampaignStore& shard, std::uint64_t& next) {
    auto audits = shard.audits();
    for (auto& audit : audits) {
        audit.run += next;
    }
    into.add_audits(audits);
    std::uint64_t last = 0;
    for (auto run : shard.runs()) {
        last = std::max(last, run.run);
        run.run += next;
        into.update_run(run);
    }
    next += last;
}

// In the words of a merge: which of the files says otherwise.
template <class F>
void blame(const CampaignStore& shard, const CampaignStore& into, F copy) {
    try {
        copy();
    } catch (const Error& e) {
        const std::string sentence = e.what();
        const auto own = fmt::format("'{}' has", into.path().string());
        if (!sentence.starts_with(own)) {
            throw;
        }
        throw Error(Fault::input,
                    fmt::format("'{}' and a shard before it disagree: it has{}",
                                shard.path().string(), sentence.substr(own.size())),
                    e.hint());
    }
}

void copy_rows(CampaignStore& into, const CampaignStore& shard) {
    into.set_strata(shard.strata());
    shard.each_golden(
        [&](const GoldenInput& golden) {
            into.add_golden({&golden, 1});
            return true;
        },
        true);
    shard.each_fault([&](const FaultRecord& fault) {
        into.add_faults({&fault, 1});
        return true;
    });
    shard.each_effect([&](const LayerEffect& effect) {
        into.append({}, {&effect, 1});
        return true;
    });
    shard.each_result([&](const TrialResult& result) {
        into.append({&result, 1});
        return true;
    });
    into.commit();
}

}  // namespace

CampaignStore merge(std::span<const fs::path> shards, const fs::path& path) {
    if (shards.empty()) {
        throw Error(Fault::usage, "there is no shard to merge");
    }
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
        throw Error(Fault::usage, fmt::format("'{}' is there already", path.string()),
                    "name another file, or remove it");
    }
    const auto first = CampaignStore::read(shards[0]);
    auto header = first.header();
    for (const auto& shard : shards.subspan(1)) {
        const auto other = CampaignStore::read(shard);
        other.require_same(header);
        widen(header, other.header());
    }
    if (!all_shards(shards)) {
        header.finished.clear();
    }
    Unfinished file(path.string() + ".merging");
    {
        auto into = CampaignStore::create(file.path(), header, {1u << 16, 1e9});
        std::uint64_t next = 0;
        for (const auto& shard : shards) {
            const auto from = CampaignStore::read(shard);
            blame(from, into, [&] { copy_rows(into, from); });
            copy_sessions(into, from, next);
        }
        into.commit();
    }
    file.keep_as(path);
    return CampaignStore::open(path);
}

}  // namespace trocar
