"""What is drawn at random: effects, and the faults of campaigns."""

import numpy
import onnx

import reference
from bench import everything, images, info, make_model, network, node, rows
from reference import TYPES, Fault


def part_random(bench):
    """Distribution and keys of the effects that draw; 4096 elements, five standard errors."""
    ones = numpy.ones((64, 64), numpy.float32)

    def model(array, type="f32", mean=False):
        nodes = [node("Cast", "w", "c", "open", to=1), node("Mul", "c x", "m", "mul")]
        nodes.append(node("ReduceMean", "m", "y", "last") if mean else node("Identity", "m", "y", "last"))
        codes = [TYPES[type].code(float(v)) for v in array.ravel()]
        return make_model(nodes, [info("x", "f32", [1])], [info("y", "f32", None)], [reference.constant("w", TYPES[type], [64, 64], codes)])

    def measured(graph, faults, *options):
        path, listed = bench.fresh(".onnx"), bench.fresh(".txt")
        onnx.save(graph, path)
        listed.write_text("\n".join(faults))
        store = bench.store(path, "--faults-from", listed, "--layers", *options, *bench.inputs({"x": numpy.ones(1, numpy.float32)}))
        return rows(store, """SELECT t.*, (SELECT changed FROM layer_effects e WHERE e.trial = t.trial AND e.tensor = 'y') AS elements
                              FROM trials t ORDER BY trial""")

    def near(fault, what, value, mean, error):
        bench.check(value is not None and abs(value - mean) <= 5 * error, f"{fault}: {what} is {value}, not {mean} ± {error}")

    faults = [f"w [*] noise 0.5 key {k}" for k in range(6)] + [f"w [*] gain 0.5 key {k}" for k in range(6)]
    drawn = measured(model(ones), faults)
    for row in drawn:
        near(row["fault"], "mean |z|", row["mean_abs"], 0.5 * (2 / numpy.pi) ** 0.5, 0.5 * 0.603 / 64)
        near(row["fault"], "mean z²", 10 ** (-row["sqnr_db"] / 10), 0.25, 0.25 * 2**0.5 / 64)
        bench.check(1.4 < row["max_abs"] < 3, f"{row['fault']}: the largest of 4096 is {row['max_abs']}")
        near(row["fault"], "elements changed", row["elements"], 4096, 1)
    bench.check(len({row["sqnr_db"] for row in drawn[:6]}) == 6, "keys of noise do not matter")
    for row in measured(model(ones, mean=True), faults):
        near(row["fault"], "mean z", row["max_abs"], 0, 0.5 / 64)
    for row in measured(model(3 * ones), ["w [*] gain 0.5 key 1"]):
        near(row["fault"], "mean |3z|", row["mean_abs"], 1.5 * (2 / numpy.pi) ** 0.5, 1.5 * 0.603 / 64)

    for row in measured(model(ones), [f"w [*] random 2 4 key {k}" for k in range(6)]):
        near(row["fault"], "mean", row["mean_abs"], 2, 0.577 / 64)
        near(row["fault"], "mean square", 10 ** (-row["sqnr_db"] / 10), 13 / 3, 1.17 / 64)
        bench.check(2.98 < row["max_abs"] <= 3, f"{row['fault']}: the largest of 4096 is {row['max_abs'] + 1}")
    for row in measured(model(ones, mean=True), [f"w [*] random -1 3 key {k}" for k in range(6)]):
        near(row["fault"], "mean", row["max_abs"], 0, 1.155 / 64)

    zeros = model(0 * ones, "u8")
    for bit in range(8):
        for row in measured(zeros, [f"w [*] rate {p} {bit} key {k}" for p in ("0.02", "0.5") for k in (1, 2)]):
            p = float(row["fault"].split()[3])
            near(row["fault"], "share of bits", row["mean_abs"] / 2**bit, p, (p * (1 - p)) ** 0.5 / 64)
    never, always, half = measured(zeros, ["w [*] rate 0 0-7 key 1", "w [*] rate 1 0-7 key 1", "w [*] rate 0.25 0-3 key 1"])
    bench.check(never["outcome"] == "masked", "a rate of 0 changes something")
    bench.check(always["mean_abs"] == 255, "a rate of 1 does not flip every bit")
    near(half["fault"], "changed", half["elements"], 4096 * (1 - 0.75**4), 64 * (0.316 * 0.684) ** 0.5)
    wide = model(numpy.random.default_rng(9).normal(size=(64, 64)).astype(numpy.float32))
    for row in measured(wide, [f"w [*] rate 0.001 0-31 key {k}" for k in range(4)]):
        share = 1 - 0.999**32
        near(row["fault"], "changed", row["elements"], 4096 * share, 64 * (share * (1 - share)) ** 0.5)

    again = measured(model(ones), faults)
    bench.check(again == drawn, "the same faults give other numbers the second time")
    other = measured(model(ones), faults, "--seed", 5, "--workers", 1, "--brute-force")
    bench.check(other == drawn, "the numbers of a given key depend on the seed, the workers or the accelerations")
    path = bench.fresh(".onnx")
    onnx.save(model(ones), path)
    arguments = (path, "--target", "constants,weights", "--tensor", "w", "--faults", 20, *bench.inputs({"x": numpy.ones(1, numpy.float32)}))
    for effect in ("noise 0.5", "gain 0.5", "random 0 2", "rate 0.1"):
        one, same, another = (everything(bench.store(*arguments, "--model", effect, "--seed", seed)) for seed in (1, 1, 2))
        bench.check(one == same, f"--model '{effect}': the same seed gives other rows")
        bench.check(one["results"] != another["results"], f"--model '{effect}': another seed gives the same rows")
        keys = {row["fault"].rsplit(" key ")[-1] for row in one["faults"]}
        bench.check(len(keys) == 20, f"--model '{effect}': {len(keys)} keys for 20 trials")


CAMPAIGNS = [
    "--target weights --faults 60",
    "--target weights --faults 60 --bits exponent --per layer --allocation equal",
    "--target weights --faults 40 --all-readers --model stuck1",
    "--target activations --faults 60",
    "--target activations --faults 40 --per layer,bit --bits 23-30",
    "--target activations --faults 40 --model zero --extent channel",
    "--target activations --faults 30 --extent row --bits 30",
    "--target activations --faults 10 --extent tensor --model stuck0",
    "--target reads --faults 50",
    "--target inputs --faults 40",
    "--target weights,activations,inputs --faults 60 --per target",
    "--target weights --faults 40 --burst 3",
    "--target weights --faults 40 --together 2",
    "--target weights,activations --faults 40 --together 3",
    "--target weights --faults 20 --extent channel --model=multiply^-2",
    "--target activations --faults 40 --model=add^100 --at Conv",
    "--target activations --faults 40 --model=set^-7 --tensor r*",
    "--target weights --tensor w2 --elements [1,:,0:2] --faults 30",
]


def part_campaigns(bench):
    random = numpy.random.default_rng(10)
    model = network(random)
    runs = images(random, 2)
    path, data = bench.fresh(".onnx"), bench.data([run["x"] for run in runs])
    onnx.save(model, path)
    for place, text in enumerate(CAMPAIGNS):
        arguments = [path, "--data", data, "--seed", place, *(word.replace("^", " ") for word in text.split())]
        store = bench.store(*arguments)
        bench.compare(store, model, runs, text)
        whole = everything(store)
        count = min(int(text.split("--faults ")[1].split()[0]), sum(row["population"] for row in whole["strata"]))
        bench.check(len(whole["faults"]) == count, f"{text}: {len(whole['faults'])} trials")
        bench.check(len({row["fault"] for row in whole["faults"]}) == count, f"{text}: a fault is there twice")
        ways = [["--workers", 1], ["--brute-force"], ["--without", "all", "--workers", 2], ["--memory", "1M"]]
        for way in ways if place % 6 == 0 else ways[1:2]:
            bench.check(everything(bench.store(*arguments, *way)) == whole, f"{text}: other rows with {' '.join(map(str, way))}")
        if place % 4 == 0:
            shards = [bench.store(*arguments, "--shard", f"{i}/3") for i in (1, 2, 3)]
            merged = bench.fresh(".db")
            done = bench.run("merge", *shards, "--store", merged)
            bench.check(done.returncode == 0 and everything(merged) == whole, f"{text}: shards are other rows: {done.stderr}")
            bench.check(sum(len(rows(s, "SELECT DISTINCT trial FROM results")) for s in shards) == count, f"{text}: shards overlap")

    exhaustive = [path, "--data", data, "--target", "weights", "--tensor", "b1"]
    every = everything(bench.store(*exhaustive, "--exhaustive"))
    texts = {row["fault"] for row in every["faults"]}
    bench.check(texts == {f"b1>conv1 [{i}] flip {bit}" for i in range(4) for bit in range(32)}, f"--exhaustive: {len(texts)} faults of b1")
    bench.check(len(every["faults"]) == 128, f"--exhaustive: {len(every['faults'])} trials")
    bench.compare(bench.store(*exhaustive, "--exhaustive"), model, runs, "exhaustive")
    drawn = everything(bench.store(*exhaustive, "--faults", 128))
    bench.check({row["fault"] for row in drawn["faults"]} == texts, "128 faults of 128 are not all of them")
    first, second = (everything(bench.store(*exhaustive, "--faults", 30, "--seed", seed))["faults"] for seed in (1, 2))
    bench.check(first != second, "another seed draws the same faults")
    bits = [Fault(row["fault"]).mask.bit_length() - 1 for row in everything(bench.store(path, "--data", data, "--faults", 640))["faults"]]
    bench.check(abs(numpy.mean(bits) - 15.5) < 5 * 9.23 / 640**0.5, f"bits are not drawn evenly: mean {numpy.mean(bits)}")


def part_labels(bench):
    """What is right with and without faults; only inputs that were right; a few inputs for each trial."""
    random = numpy.random.default_rng(12)
    model = network(random)
    runs = images(random, 8)
    tops = [int(reference.run(model, run)[0].argmax()) for run in runs]
    labels = [top if i % 3 else (top + 1) % 8 for i, top in enumerate(tops)]
    path, data = bench.fresh(".onnx"), bench.data([run["x"] for run in runs], labels)
    onnx.save(model, path)
    arguments = [path, "--data", data, "--target", "activations,weights", "--bits", "28-30", "--faults", 25]
    store = bench.store(*arguments)
    bench.compare(store, model, runs)
    for row in rows(store, "SELECT * FROM results"):
        label = labels[row["input"]]
        right = int(row["golden_top"] == label), int(row["faulty_top"] == label)
        bench.check((row["golden_correct"], row["faulty_correct"]) == right, f"trial {row['trial']}, input {row['input']}: right {right}")
    golden = rows(store, "SELECT label, top, correct FROM golden ORDER BY input")
    bench.check([tuple(row.values()) for row in golden] == [(l, t, int(l == t)) for l, t in zip(labels, tops)], f"golden: {golden}")
    correct = [i for i in range(8) if labels[i] == tops[i]]
    only = rows(bench.store(*arguments, "--only-correct"), "SELECT DISTINCT golden_correct FROM results")
    bench.check([row["golden_correct"] for row in only] == [1], "--only-correct takes others too")
    count = rows(bench.store(*arguments, "--only-correct"), "SELECT count(*) AS n FROM results")[0]["n"]
    bench.check(count == 25 * len(correct), f"--only-correct: {count} results of 25 trials on {len(correct)} inputs")
    few = bench.store(*arguments, "--inputs-per-fault", 3)
    bench.compare(few, model, runs, "few")
    counts = rows(few, "SELECT trial, count(*) AS n, count(DISTINCT input) AS d FROM results GROUP BY trial")
    bench.check(all((row["n"], row["d"]) == (3, 3) for row in counts) and len(counts) == 25, "--inputs-per-fault 3 does not try three inputs")
    used = rows(few, "SELECT DISTINCT input FROM results")
    bench.check(len(used) == 8, f"25 times 3 inputs are only {len(used)} of 8")
