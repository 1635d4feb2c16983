# What counts as SDC follows from the outputs. Tokens: integers, compared for equality.

$ trocar inject models/token_decoder.onnx --fill random --faults 200 --store tokens.db | grep -E 'Decision|^SDC|^Benign|Decided|Share'
  Decision                    equality of 'next' (chosen automatically; --decision changes it)
SDC ...
Benign ...
  Decided                     1,200  in all results that have outputs
  Decided otherwise ...
  Share ...

$ trocar inject replay tokens.db --fault $(python3 -c 'import sqlite3; print(sqlite3.connect("tokens.db").execute("SELECT trial FROM results WHERE golden_top <> faulty_top").fetchone()[0])') | grep -E 'Decision|Outcome|choice|With|Positions|store'
Decision                      equality of 'next' (chosen automatically; --decision changes it)
  Outcome                       sdc
  First choice without faults   7  at the first position
  With them ...  at the first position
  Positions changed ...  of 6
  As in the store               yes

# A detector: boxes decide nothing, the labels do, and their number may vary.

$ trocar inject models/box_detector.onnx --fill random --faults 300 --store boxes.db | grep -E 'Decision|^SDC|^Benign|Decided|Share'
  Decision                    equality of 'labels' (chosen automatically; --decision changes it)
SDC ...
Benign ...
  Decided ...
  Decided otherwise ...
  Share ...

$ trocar inject export boxes.db --table results -o boxes.csv -q; python3 - <<'PY'
> import csv
> rows = list(csv.DictReader(open("boxes.csv")))
> print(sorted({int(r["positions"]) for r in rows}), all((int(r["positions_changed"]) > 0) == (r["outcome"] == "sdc") for r in rows))
> print({r["sdc5"] for r in rows}, sorted({r["sdc1"] for r in rows}))
> PY
[17, 18] True
{''} ['0', '1']

# Pixels: scores along the axis of the channels.

$ trocar inject models/pixel_classes.onnx --fill random --faults 200 --store pixels.db | grep -E 'Decision|^SDC|^Benign|Decided|Share|changes'
  Decision ... scores of 'out' along axis 1 (chosen automatically; --decision changes...
SDC-1 ...
Benign ...
SDC-5 ...
SDC-10 % ...
SDC-20 % ...
  Decided                     12,800  in all results that have outputs
  Decided otherwise ...
  Share ...

# One number: there is no SDC rate, and no plot of it.

$ trocar inject models/one_number.onnx --fill random --faults 200 --store number.db | grep -E 'Decision|^SDC|^Benign|^Changed|chooses|claimed|There is'
  Decision ... none, for no output shows class scores or integers (--decision chooses...
Changed ...
There is no SDC rate: the decision is none, for no output shows class scores or integers (--decision
chooses one).
What may be claimed: the rate of changed outputs of all faults is ...

$ trocar inject report number.db --by layer --plots plots | grep -E '^Layer|^last|Plots|Files|no SDC rate'; ls plots
Layer  Faults  of  Results  Changed    from      to    DUE   from      to  Masked    from      to
last ...
Plots
  Files                   –¹
¹ there is no SDC rate to plot
There is no SDC rate: the decision is none, for no output shows class scores or integers (--decision

$ trocar inject replay number.db --fault 3 | grep -E 'Decision|Outcome|choice|Positions|store'
Decision                      none, for no output shows class scores or integers (--decision chooses
  Outcome                       masked
  As in the store               yes

$ trocar inject models/one_number.onnx --fill random --faults 200 --stop-at 0.1
trocar: there is no SDC rate to stop at, for the decision is 'none'
  hint: choose a --decision, or leave --stop-at out
[exit 2]

$ trocar inject models/one_number.onnx --fill random --faults 200 --decision error:0.01 --store error.db | grep -E 'Decision|^SDC|^Benign'; trocar inject report error.db --plots plots -q; ls plots
  Decision                    absolute error of 'price' above 0.01
SDC ...
Benign ...
layers.svg
layers_and_bits.svg

# Chosen: the first output that fits, one by its name or index, an axis.

$ for how in scores scores:out scores:0 scores:out:1 scores::-3 scores:out:-1 topk:2 topk:2:out equal error:0.5:0 none auto; do trocar inject models/pixel_classes.onnx --fill random --faults 30 --decision $how --store one.db -q && python3 -c 'import sqlite3; print(*sqlite3.connect("one.db").execute("SELECT decision, sum(positions) FROM campaign, results").fetchone())'; trocar inject replay one.db --fault 7 | grep store; rm one.db; done
scores:out:1 1920
  As in the store               yes
scores:out:1 1920
  As in the store               yes
scores:out:1 1920
  As in the store               yes
scores:out:1 1920
  As in the store               yes
scores:out:1 1920
  As in the store               yes
scores:out:3 1200
  As in the store               yes
topk:2:out:1 1920
  As in the store               yes
topk:2:out:1 1920
  As in the store               yes
equal:out 9600
  As in the store               yes
error:0.5:out 9600
  As in the store               yes
none None
  As in the store               yes
scores:out:1 1920
  As in the store               yes

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --decision scores:aut
trocar: there is no output 'aut' to decide by
  hint: did you mean 'out'? the output is 'out'
[exit 2]

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --decision scores:out:4
trocar: axis 4 is out of range for output 'out', which is f32 1x5x8x8
  hint: use -4 to 3
[exit 2]

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --decision scores:out:0
trocar: output 'out' has 1 element along axis 0: scores need at least 2
  hint: name another output or axis, or use error:LIMIT
[exit 2]

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --decision topk:5
trocar: topk:5 never changes for output 'out', which has 5 classes along axis 1
  hint: use a K from 1 to 4
[exit 2]

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --decision topk:none
trocar: invalid decision 'topk:none': K is a number of classes, at least 1
  hint: use scores[:OUTPUT[:AXIS]], equal[:OUTPUT], topk:K[:OUTPUT], error:LIMIT[:OUTPUT], none, or auto
[exit 2]

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --decision error:-1
trocar: invalid decision 'error:-1': LIMIT is a number, at least 0
  hint: use scores[:OUTPUT[:AXIS]], equal[:OUTPUT], topk:K[:OUTPUT], error:LIMIT[:OUTPUT], none, or auto
[exit 2]

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --decision equals
trocar: invalid decision 'equals'
  hint: did you mean 'equal'? use scores[:OUTPUT[:AXIS]], equal[:OUTPUT], topk:K[:OUTPUT], error:LIMIT[:OUTPUT], none, or auto
[exit 2]

$ trocar inject models/one_number.onnx --fill random --faults 10 --decision scores
trocar: no output fits the decision 'scores'
  hint: scores need an output with at least 2 of them; use error:LIMIT or none
[exit 2]

# In a campaign file; it belongs to the campaign.

$ cat > campaign.yaml <<'YAML'
> model: models/pixel_classes.onnx
> inputs: {fill: random}
> faults: {target: weights}
> trials: 60
> decision: topk:2
> YAML
> trocar inject campaign.yaml --shard 1/2 --store a.db -q; trocar inject campaign.yaml --shard 2/2 --store b.db -q
> trocar inject campaign.yaml --store whole.db -q; trocar inject merge a.db b.db --store all.db --json | grep -c digest; for f in whole all; do trocar inject report $f.db 2>/dev/null | grep -E 'Decision|^SDC'; done
1
  Decision                golden first choice of 'out' along axis 1 among the first 2
SDC ...
  Decision                golden first choice of 'out' along axis 1 among the first 2
SDC ...

$ trocar inject campaign.yaml --decision scores --store whole.db --resume
trocar: the store 'whole.db' is of another campaign: 'decision: "topk:2"' in the store, 'decision: scores' here
  hint: name another file for this campaign
[exit 2]

$ trocar inject campaign.yaml --decision scores --shard 2/2 --store c.db -q; trocar inject merge a.db c.db --store no.db
trocar: the store 'c.db' is of another campaign: 'decision: scores' in the store, 'decision: "topk:2"' here
  hint: name another file for this campaign
[exit 2]

$ sed -i 's/topk:2/topk/' campaign.yaml; trocar inject campaign.yaml
trocar: campaign.yaml:5: decision: invalid decision 'topk': K is a number of classes, at least 1
  hint: use scores[:OUTPUT[:AXIS]], equal[:OUTPUT], topk:K[:OUTPUT], error:LIMIT[:OUTPUT], none, or auto
[exit 3]

# Without the option it is the same campaign as with auto, and its text has no word of it.

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --store auto.db --decision auto -q; trocar inject models/pixel_classes.onnx --fill random --faults 10 --store auto.db --resume -q
> python3 -c 'import sqlite3; print("decision" in sqlite3.connect("auto.db").execute("SELECT campaign FROM campaign").fetchone()[0])'
False

# After post-processing: the classes of the pixels as integers.

$ cat > classes.py <<'PY'
> import array, json, struct, sys
> for line in sys.stdin:
>     run = json.loads(line)
>     data = open(list(run["outputs"].values())[0], "rb").read()
>     x = array.array("f", data[10 + int.from_bytes(data[8:10], "little"):])
>     best = [max(range(5), key=lambda c: (x[64 * c + p], -c)) for p in range(64)]
>     path = run["folder"] + "/classes.npy"
>     header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (8, 8), }"
>     header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
>     open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.array("q", best).tobytes())
>     print(json.dumps({"outputs": {"classes": path}}), flush=True)
> PY
> ln -s "$(python3 -c 'import sys; print(sys.executable)')" py; trocar inject models/pixel_classes.onnx --fill random --faults 200 --postprocess './py classes.py' --store post.db | grep -E 'Decision|^SDC|Decided'
> for f in pixels post; do trocar inject export $f.db --table results -o $f.csv -q; python3 -c 'import csv, sys; print(*[(r["outcome"], r["positions_changed"]) for r in csv.DictReader(open(sys.argv[1]))], sep="\n")' $f.csv > $f.txt; done; cmp pixels.txt post.txt; wc -l < post.txt
  Decision                    equality of 'classes' (chosen automatically; --decision changes it)
SDC ...
  Decided                     12,800  in all results that have outputs
  Decided otherwise ...
200

$ trocar inject models/pixel_classes.onnx --fill random --faults 10 --postprocess './py classes.py' --decision equal:out
trocar: there is no output 'out' to decide by
  hint: the output is 'classes'
[exit 2]

# Only data has labels.

$ trocar inject models/token_decoder.onnx --fill random --faults 10 --only-correct
trocar: only_correct needs data with labels
[exit 2]
