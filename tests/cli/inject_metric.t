# A metric by a command: told a line of JSON for each result, it answers one.

$ ln -s "$(python3 -c 'import sys; print(sys.executable)')" py; cat > measure.py <<'END'
> import array, json, os, sys
> def numbers(path):
>     data = open(path, "rb").read()
>     return array.array("f", data[10 + int.from_bytes(data[8:10], "little"):])
> how = sys.argv[1]
> for count, line in enumerate(sys.stdin):
>     run = json.loads(line)
>     golden, faulty = (numbers(list(run[key].values())[0]) for key in ("golden", "faulty"))
>     worst = max(min(abs(a - b), 1e3) for a, b in zip(golden, faulty))
>     if how == "die" and count == 5: sys.exit("measure.py: out of luck")
>     if how == "crash" and count == 5: os.abort()
>     if how == "garbage" and count == 5: worst = [1, 2]
>     print(json.dumps({"worst": worst, "label": run["label"]} if how == "named" else worst), flush=True)
> END
> trocar inject models/transformer.onnx --fill random --faults 60 --metric './py measure.py plain' --store one.db -q
> trocar inject export one.db -o one.csv --table results -q; python3 - <<'END'
> import csv
> rows = list(csv.DictReader(open("one.csv")))
> print(len(rows), all(float(r["metric"]) == 0 for r in rows if r["outcome"] == "masked"),
>       all(abs(float(r["metric"]) - float(r["max_abs"])) < 1e-6 for r in rows if float(r["max_abs"] or 1e9) < 1e3))
> END
60 True True

$ for workers in 1 3; do trocar inject models/transformer.onnx --fill random --faults 60 --metric './py measure.py named' --workers $workers --store $workers.db -q; trocar inject export $workers.db -o $workers.csv --table metrics -q; done; cmp 1.csv 3.csv; head -n 1 1.csv; trocar inject report 1.db --by bit | grep -A 5 '^Metrics$'
trial,input,name,number
Metrics
Metric  Results ...
...
worst        60 ...
...

$ trocar inject replay 1.db --fault 5 | grep store
  As in the store               yes

# What goes wrong is said; what was measured stays.

$ trocar inject models/transformer.onnx --fill random --faults 60 --metric './py measure.py die' --workers 1 --store die.db
trocar: the command './py measure.py die' ended with exit code 1, asked about input 'input'
  hint: measure.py: out of luck
[exit 3]

$ trocar inject models/transformer.onnx --fill random --faults 60 --metric './py measure.py crash' --workers 1
trocar: the command './py measure.py crash' ended with exit code 134, asked about input 'input'
...
[exit 3]

$ trocar inject models/transformer.onnx --fill random --faults 60 --metric './py measure.py garbage' --workers 1
trocar: the command './py measure.py garbage' answers what makes no sense: [1,2]
  hint: a line with a number, or with an object of numbers by their names
[exit 3]

$ trocar inject models/transformer.onnx --fill random --faults 60 --metric nothing-of-that-name --workers 1
trocar: the command 'nothing-of-that-name' ended with exit code 127, asked about input 'input'
...
[exit 3]

# Post-processing: decisions are taken from what a command makes of the outputs.

$ cat > constant.py <<'END'
> import json, struct, sys
> for line in sys.stdin:
>     run = json.loads(line)
>     path = run["folder"] + "/made.npy"
>     header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
>     header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
>     open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<ff", 1, 0))
>     print(json.dumps({"outputs": {"first": path}}), flush=True)
> END
> trocar inject models/transformer.onnx --fill random --faults 60 --postprocess './py constant.py' --store post.db --decision scores -q
> trocar inject export post.db -o post.csv --table results -q; cut -d, -f3 post.csv | grep -c sdc
0
[exit 1]

# Importance: more of what is rare, and the same rates.

$ trocar inject models/transformer.onnx --fill random --faults 400 --importance bits:30=50 --store weighted.db | grep Intervals
  Intervals ... Clopper–Pearson, 95 % confidence, with the number of trials that the...
$ trocar inject export weighted.db -o weighted.csv --table faults -q; cut -d, -f3,10 weighted.csv | grep ',30$' | sort -u | wc -l
1
$ trocar inject models/transformer.onnx --fill random --importance 30=50
trocar: '30=50' says nothing of importance
  hint: write bits:23-30=10 or layer:/conv1/*=5
[exit 2]

# It may end early: when the weighted interval is narrow enough, as the report has it.

$ trocar inject models/transformer.onnx --fill random --faults 20000 --importance bits:30=20 --decision scores --stop-at 0.05 --store early.db 2>/dev/null | grep -o 'stopped early'
stopped early
$ trocar inject report early.db --json 2>/dev/null | python3 -c '
> import json, sys
> sdc, = (row for row in json.load(sys.stdin)["tables"]["outcomes"] if row["outcome"] == "SDC-1")
> print((sdc["estimated_high"] - sdc["estimated_low"]) / 2 <= 0.05, sdc["share"] > sdc["estimated_rate"])'
True True
