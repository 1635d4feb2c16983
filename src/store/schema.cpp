#include "store/schema.h"

namespace trocar::store {

const char* schema() {
    return R"(
CREATE TABLE campaign (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    campaign       TEXT NOT NULL,
    hash           TEXT NOT NULL,
    seed           INTEGER NOT NULL,
    model          TEXT NOT NULL,
    model_sha256   TEXT NOT NULL,
    data           TEXT NOT NULL,
    data_hash      TEXT NOT NULL,
    engine         TEXT NOT NULL,
    engine_version TEXT NOT NULL,
    view           TEXT NOT NULL,
    threads        INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    created        TEXT NOT NULL,
    finished       TEXT,
    decision         TEXT,
    decision_meaning TEXT
);
CREATE TABLE context (
    place INTEGER PRIMARY KEY,
    key   TEXT NOT NULL,
    value TEXT NOT NULL
);
CREATE TABLE strata (
    stratum    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    target     TEXT,
    layer      TEXT,
    bit        INTEGER,
    population INTEGER NOT NULL,
    planned    INTEGER NOT NULL
);
CREATE TABLE faults (
    trial   INTEGER PRIMARY KEY,
    stratum INTEGER NOT NULL,
    weight  REAL NOT NULL,
    fault   TEXT NOT NULL,
    hash    TEXT NOT NULL,
    target  TEXT,
    layer   TEXT,
    tensor  TEXT,
    effect  TEXT,
    bit     INTEGER,
    rate    REAL
);
CREATE TABLE results (
    trial          INTEGER NOT NULL,
    input          INTEGER NOT NULL,
    outcome        TEXT NOT NULL,
    golden_top     INTEGER,
    faulty_top     INTEGER,
    sdc1           INTEGER,
    sdc5           INTEGER,
    sdc10          INTEGER,
    sdc20          INTEGER,
    golden_correct INTEGER,
    faulty_correct INTEGER,
    detected       INTEGER NOT NULL,
    max_abs        REAL,
    mean_abs       REAL,
    max_rel        REAL,
    sqnr_db        REAL,
    cosine         REAL,
    metric         REAL,
    failure        TEXT,
    positions      INTEGER,
    positions_changed INTEGER,
    PRIMARY KEY (trial, input)
) WITHOUT ROWID;
CREATE TABLE metrics (
    trial  INTEGER NOT NULL,
    input  INTEGER NOT NULL,
    name   TEXT NOT NULL,
    number REAL,
    PRIMARY KEY (trial, input, name)
) WITHOUT ROWID;
CREATE TABLE layer_effects (
    trial   INTEGER NOT NULL,
    input   INTEGER NOT NULL,
    tensor  TEXT NOT NULL,
    op      TEXT NOT NULL,
    changed INTEGER NOT NULL,
    bad     INTEGER NOT NULL,
    max_abs REAL,
    PRIMARY KEY (trial, input, tensor, op)
) WITHOUT ROWID;
CREATE TABLE golden (
    input   INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    label   INTEGER,
    top     INTEGER,
    correct INTEGER
);
CREATE TABLE golden_outputs (
    input INTEGER NOT NULL,
    place INTEGER NOT NULL,
    name  TEXT NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (input, place)
);
CREATE TABLE runs (
    run     INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    ended   TEXT,
    trials  INTEGER NOT NULL,
    seconds REAL NOT NULL,
    results INTEGER,
    shard   INTEGER,
    shards  INTEGER
);
CREATE TABLE savings (
    run    INTEGER NOT NULL,
    key    TEXT NOT NULL,
    number REAL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE TABLE audits (
    run        INTEGER NOT NULL,
    trial      INTEGER NOT NULL,
    input      INTEGER NOT NULL,
    same       INTEGER NOT NULL,
    difference TEXT,
    PRIMARY KEY (run, trial, input)
) WITHOUT ROWID;

CREATE VIEW trials AS
    SELECT results.*, faults.stratum, faults.weight, faults.fault, faults.hash, faults.target,
           faults.layer, faults.tensor, faults.effect, faults.bit, faults.rate
    FROM results LEFT JOIN faults USING (trial);
CREATE VIEW outcome_counts AS
    SELECT outcome, count(*) AS results, 1.0 * count(*) / (SELECT count(*) FROM results) AS share
    FROM results GROUP BY outcome;
CREATE VIEW rates_by_layer AS
    SELECT layer, count(DISTINCT trial) AS trials, count(*) AS results,
           avg(CASE WHEN sdc1 IS NOT NULL THEN outcome = 'sdc' END) AS sdc_rate,
           1.0 * sum(positions_changed) / sum(positions) AS changed_rate, avg(outcome = 'due') AS due_rate,
           avg(outcome = 'masked') AS masked_rate, avg(detected) AS detected_rate
    FROM trials GROUP BY layer;
CREATE VIEW rates_by_bit AS
    SELECT bit, count(DISTINCT trial) AS trials, count(*) AS results,
           avg(CASE WHEN sdc1 IS NOT NULL THEN outcome = 'sdc' END) AS sdc_rate,
           1.0 * sum(positions_changed) / sum(positions) AS changed_rate, avg(outcome = 'due') AS due_rate,
           avg(outcome = 'masked') AS masked_rate, avg(detected) AS detected_rate
    FROM trials GROUP BY bit;
CREATE VIEW rates_by_target AS
    SELECT target, count(DISTINCT trial) AS trials, count(*) AS results,
           avg(CASE WHEN sdc1 IS NOT NULL THEN outcome = 'sdc' END) AS sdc_rate,
           1.0 * sum(positions_changed) / sum(positions) AS changed_rate, avg(outcome = 'due') AS due_rate,
           avg(outcome = 'masked') AS masked_rate, avg(detected) AS detected_rate
    FROM trials GROUP BY target;
CREATE VIEW rates_by_layer_and_bit AS
    SELECT layer, bit, count(DISTINCT trial) AS trials, count(*) AS results,
           avg(CASE WHEN sdc1 IS NOT NULL THEN outcome = 'sdc' END) AS sdc_rate,
           1.0 * sum(positions_changed) / sum(positions) AS changed_rate, avg(outcome = 'due') AS due_rate
    FROM trials GROUP BY layer, bit;
CREATE VIEW accuracy AS
    SELECT rate, count(DISTINCT trial) AS trials, count(*) AS results,
           avg(golden_correct) AS golden_accuracy, avg(faulty_correct) AS faulty_accuracy
    FROM trials WHERE golden_correct IS NOT NULL GROUP BY rate;
)";
}

const std::vector<std::string>& table_names() {
    static const std::vector<std::string> names{
        "campaign",      "context",         "strata",
        "faults",        "results",         "metrics",
        "layer_effects", "golden",          "golden_outputs",
        "runs",          "savings",         "audits",
        "trials",        "outcome_counts",  "rates_by_layer",
        "rates_by_bit",  "rates_by_target", "rates_by_layer_and_bit",
        "accuracy"};
    return names;
}

}  // namespace trocar::store
