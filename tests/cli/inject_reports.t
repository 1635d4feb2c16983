# What a campaign was told is what its reports go by. No section is lost in JSON.

$ cat > look.py <<'END'
> import json, sys
> def once(pairs):
>     keys = [key for key, _ in pairs]
>     assert len(keys) == len(set(keys)), [key for key in keys if keys.count(key) > 1]
>     return dict(pairs)
> for name in sys.argv[1:]:
>     report = json.load(open(name), object_pairs_hook=once)
>     text = json.dumps(report, ensure_ascii=False)
>     print(name, *(word in text for word in ("99 % confidence", "95 % confidence", "sessions", "speed_up", "not finished", "runs/s", "trials/s")), report["partial"])
> END
> trocar inject models/transformer.onnx --fill random --faults 600 --seed 1 --per layer --confidence 0.99 --store run.db --json > run.json
> trocar inject report run.db --json > report.json
> trocar inject report run.db --confidence 0.95 --json > other.json
> python3 look.py run.json report.json other.json
run.json True False True True False True False False
report.json True False True False False True False False
other.json False True True False False True False False
$ trocar inject report run.db | grep Detected
  Detected                –²
$ trocar inject report run.db | grep -o 'ranges were not monitored'
ranges were not monitored

# Sessions have an end, count trials and results, and know their shard.

$ cat > sql.py <<'END'
> import sqlite3, sys
> database = sqlite3.connect(sys.argv[1])
> for row in database.execute(sys.argv[2]): print(*row)
> database.commit()
> END
> trocar inject models/lstm.onnx --fill random --faults 50 --store shard.db --shard 2/3 -q; python3 sql.py shard.db 'SELECT ended >= started, trials, results, shard, shards FROM runs'
1 17 17 1 3
$ trocar inject report shard.db --json | grep -o '"partial": [a-z]*'
trocar: warning: the campaign is not finished: rates are those of 17 of 50 trials, the complete blocks
"partial": true

# One trial of the last block is missing: the block does not count. That is no interruption of the report.

$ python3 sql.py run.db 'DELETE FROM results WHERE trial = 599'; python3 sql.py run.db 'UPDATE campaign SET finished = NULL'
$ trocar inject report run.db --json | grep -o '"partial": [a-z]*'
trocar: warning: the campaign is not finished: rates are those of 382 of 600 trials, the complete blocks
trocar: warning: 217 trials are left out of all rates: they are in blocks that are not complete, and say nothing of other faults
"partial": true
$ trocar inject report run.db 2>/dev/null | grep -E 'Trials|Interrupted'
  Trials (n)              382  217 more are left out

# Enough is enough: --stop-at is a goal, and there is nothing to go on with.

$ goal() { trocar inject models/transformer.onnx --fill random --faults 20000 --decision scores --stop-at 0.05 --store goal.db "$@"; }
> goal | grep -oE 'reached its goal, the SDC rate to ± 0.05|not finished|Interrupted'; goal --resume | grep -oE 'Runs with faults .*|reached its goal'
reached its goal, the SDC rate to ± 0.05
Runs with faults ... 0
reached its goal
$ trocar inject report goal.db | grep -oE 'reached its goal|not finished'
reached its goal
$ trocar inject report goal.db --json | grep -o '"partial": [a-z]*'
"partial": false

# `plan` and the campaign count alike.

$ trocar inject plan models/lstm.onnx --fill random --margin 0.05 --confidence 0.99 --json | grep -o '"trials":[0-9]*'
"trials":662
$ trocar inject models/lstm.onnx --fill random --margin 0.05 --confidence 0.99 | grep 'Trials (n)'
  Trials (n)              662

# What campaign files are told, options are told. Shares are shares.

$ trocar inject models/lstm.onnx --fill random --exhaustive --together 2
trocar: an exhaustive campaign has one fault per trial
  hint: give a number of trials instead
[exit 2]
$ trocar inject models/lstm.onnx --fill random --exhaustive --faults 20
trocar: a number of trials, exhaustive, and a margin exclude one another
  hint: give one of them
[exit 2]
$ trocar inject models/lstm.onnx --fill random --fault 'x [0] flip 3' --faults 20
trocar: listed faults are all tried: there is no number of trials to give
[exit 2]
$ trocar inject models/lstm.onnx --fill random --only-correct
trocar: only_correct needs data with labels
[exit 2]
$ trocar inject models/lstm.onnx --fill random --confidence 95
trocar: a confidence lies between 0 and 1
  hint: 0.95 is usual
[exit 2]
$ trocar inject models/lstm.onnx --fill random --audit 100
trocar: --audit takes a share from 0 to 1, or a percentage, not '100'
  hint: write --audit 100%
[exit 2]
$ audited() { trocar inject "$@" --faults 40 | grep 'Done again'; }
> audited models/lstm.onnx --fill random --audit 1; audited models/lstm.onnx --fill random --audit 100%
> printf 'model: models/lstm.onnx\nfaults: {target: weights}\naudit: 1\n' > all.yaml; audited all.yaml --fill random
  Done again by brute force  40  all with the same bits
  Done again by brute force  40  all with the same bits
  Done again by brute force  40  all with the same bits

# A campaign file defines the faults; it may be told how many.

$ trocar inject all.yaml --fill random --bits 30
trocar: --bits cannot be given with a campaign file: 'all.yaml' defines the faults
  hint: change `faults:` in the file, or pass the model and all options
[exit 2]
$ for option in '--target weights' '--at name:x' '--model zero' '--tensor x' '--elements [0]' '--burst 1' '--extent row' --all-readers '--fault x' '--faults-from x'; do trocar inject all.yaml --fill random $option 2>&1 | head -n 1 | cut -d: -f2; done
 --target cannot be given with a campaign file
 --at cannot be given with a campaign file
 --model cannot be given with a campaign file
 --tensor cannot be given with a campaign file
 --elements cannot be given with a campaign file
 --burst cannot be given with a campaign file
 --extent cannot be given with a campaign file
 --all-readers cannot be given with a campaign file
 --fault cannot be given with a campaign file
 --faults-from cannot be given with a campaign file
