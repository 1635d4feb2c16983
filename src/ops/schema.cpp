#include "trocar/op_store.h"

namespace trocar {

const char* op_schema() {
    return R"(
CREATE TABLE host (
    id           INTEGER PRIMARY KEY,
    fingerprint  TEXT NOT NULL UNIQUE,
    cpu          TEXT NOT NULL,
    cores        INTEGER NOT NULL,
    cache_bytes  INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    system       TEXT NOT NULL,
    hypervisor   TEXT NOT NULL
);
CREATE TABLE setting (
    id      INTEGER PRIMARY KEY,
    host    INTEGER NOT NULL REFERENCES host,
    engine  TEXT NOT NULL,
    version TEXT NOT NULL,
    options TEXT NOT NULL,
    threads INTEGER NOT NULL,
    build   TEXT NOT NULL,
    UNIQUE (host, engine, version, options, threads, build)
);
CREATE TABLE run (
    id         INTEGER PRIMARY KEY,
    uid        TEXT NOT NULL UNIQUE,
    setting    INTEGER NOT NULL REFERENCES setting,
    started    TEXT NOT NULL,
    ended      TEXT,
    run_ns     REAL NOT NULL,
    port_ns    REAL NOT NULL,
    node_ns    REAL NOT NULL,
    what       TEXT NOT NULL,
    warnings   TEXT NOT NULL DEFAULT '',
    conditions TEXT NOT NULL DEFAULT ''
);
CREATE TABLE configuration (
    id           INTEGER PRIMARY KEY,
    key          TEXT NOT NULL UNIQUE,
    unit         TEXT NOT NULL,
    type         TEXT NOT NULL,
    inputs       TEXT NOT NULL,
    attributes   TEXT NOT NULL,
    dtype        TEXT NOT NULL,
    macs         REAL NOT NULL,
    other_flops  REAL NOT NULL,
    input_bytes  REAL NOT NULL,
    weight_bytes REAL NOT NULL,
    output_bytes REAL NOT NULL,
    numbers      TEXT NOT NULL,
    uncounted    TEXT NOT NULL,
    text         TEXT NOT NULL
);
CREATE TABLE model (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    inputs TEXT NOT NULL,
    unit   TEXT NOT NULL,
    UNIQUE (sha256, inputs, unit)
);
CREATE TABLE occurrence (
    model         INTEGER NOT NULL REFERENCES model,
    configuration INTEGER NOT NULL REFERENCES configuration,
    place         INTEGER NOT NULL,
    count         INTEGER NOT NULL,
    sites         TEXT NOT NULL,
    failure       TEXT NOT NULL,
    PRIMARY KEY (model, configuration)
);
CREATE TABLE measurement (
    id            INTEGER PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES run,
    setting       INTEGER NOT NULL REFERENCES setting,
    configuration TEXT,
    model         TEXT,
    mode          TEXT NOT NULL,
    state         TEXT NOT NULL,
    reason        TEXT NOT NULL DEFAULT '',
    finished      TEXT,
    ns            REAL,
    low_ns        REAL,
    high_ns       REAL,
    mean_ns       REAL,
    call_ns       REAL,
    cpu_ns        REAL,
    doubtful      INTEGER,
    grade         TEXT,
    energy_label  TEXT NOT NULL DEFAULT 'unavailable',
    energy_source TEXT NOT NULL DEFAULT '',
    energy_why    TEXT NOT NULL DEFAULT '',
    gross_j       REAL,
    idle_j        REAL,
    net_j         REAL,
    energy_pm_j   REAL,
    watts         REAL,
    CHECK ((configuration IS NULL) <> (model IS NULL))
);
CREATE INDEX measurement_of ON measurement (setting, configuration, mode, state);
CREATE TABLE sample (
    measurement INTEGER NOT NULL REFERENCES measurement,
    visit       INTEGER NOT NULL,
    ns          REAL NOT NULL,
    cpu_ns      REAL NOT NULL,
    calls       INTEGER NOT NULL,
    switches    INTEGER NOT NULL
);
CREATE INDEX sample_of ON sample (measurement);
CREATE VIEW times AS
    SELECT h.cpu, s.engine, s.version, s.threads, c.type, c.inputs, m.mode, m.ns, m.low_ns, m.high_ns, m.grade,
           m.net_j, m.energy_label, c.macs, c.key, m.finished
    FROM measurement m JOIN configuration c ON c.key = m.configuration JOIN setting s ON s.id = m.setting
         JOIN host h ON h.id = s.host
    WHERE m.state = 'measured';
)";
}

}  // namespace trocar
