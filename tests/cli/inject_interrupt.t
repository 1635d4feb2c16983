# Ctrl-C in an isolated campaign: what is done is kept, no process is left, and the rest comes later.

$ cat > campaign <<'END'
> exec trocar inject models/mobilenet_v2.onnx --fill random --target activations --faults 1000 --workers 2 -q "$@"
> END
> cat > interrupted.py <<'END'
> import os, signal, sqlite3, subprocess, sys, time
> campaign = subprocess.Popen(["bash", "campaign", "--store", "part.db"], start_new_session=True)
> def rows():
>     try:
>         return sqlite3.connect("file:part.db?mode=ro", uri=True).execute("SELECT count(*) FROM results").fetchone()[0]
>     except sqlite3.Error:
>         return 0
> def processes():
>     found = subprocess.run(["ps", "-eo", "pgid=,args="], capture_output=True, text=True).stdout
>     return sum(line.split()[0] == str(campaign.pid) for line in found.splitlines())
> while rows() == 0 and campaign.poll() is None:
>     time.sleep(0.01)
> print("processes:", processes())
> before = rows()
> os.killpg(campaign.pid, signal.SIGINT)  # as a terminal does: to all of them
> print("exit", campaign.wait())
> print("left:", processes())
> print("some rows, not all:", before <= rows() < 1000 and before > 0)
> END
> python3 interrupted.py
processes: 3
exit 130
left: 0
some rows, not all: True

$ bash campaign --store part.db --resume; bash campaign --store whole.db
> for store in part whole; do trocar inject export $store.db -o $store.csv -q; done; cmp part.csv whole.csv; wc -l < whole.csv
1001

# A command that gives no answer meets its limit: that is what came of the run. Others go on.

$ ln -s "$(python3 -c 'import sys; print(sys.executable)')" py; cat > stall.py <<'END'
> import json, sys, time
> for line in sys.stdin:
>     run = json.loads(line)
>     same = run["golden"] == run["faulty"]
>     if not same and open(list(run["faulty"].values())[0], "rb").read()[-4] % 32 == 3: time.sleep(1017)
>     print(0 if same else 1, flush=True)
> END
> for workers in 1 2; do trocar inject models/transformer.onnx --fill random --faults 60 --metric './py stall.py' --answer-limit 5 --workers $workers --store $workers.db -q; trocar inject export $workers.db -o $workers.csv --table trials -q; done; cmp 1.csv 2.csv; wc -l < 1.csv
61
$ cut -d, -f3,19 1.csv | grep hang | sort | uniq -c
      ... hang,no answer of a command within 5 s
$ trocar inject replay 1.db --fault $(awk -F, '$3 == "hang" {print $1; exit}' 1.csv) | grep -E 'Outcome|store'
  Outcome                       hang  no answer of a command within 5 s
  As in the store               yes

# One that hangs on the golden outputs is of no use.

$ trocar inject models/transformer.onnx --fill random --faults 60 --metric 'sleep 1017' --answer-limit 0.5 --store none.db
trocar: the command 'sleep 1017' gave no answer within 0.5 s, asked about input 'input'
[exit 3]
$ sleep 0.2; ps -eo args | grep -cE '[s]leep 1017|[s]tall.py'
0
[exit 1]
