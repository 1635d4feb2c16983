# An op that crashes on numbers above 1e30 and never ends on others above 1e10: both are outcomes.

$ echo 'exec trocar inject models/fragile.onnx --fill 1 --engine onnxruntime,custom_ops=$(realpath test-tools/custom_ops.so) --view source --exhaustive --at name:scale --bits 20-30 --time-limit 0.5 -q "$@"' > fragile
> bash fragile --store run.db; trocar inject export run.db -o run.csv -q --table outcome_counts; cut -d, -f1,2 run.csv
outcome,results
benign,38
crash,2
hang,3
sdc,1

$ trocar inject export run.db -o trials.csv -q; cut -d, -f3,19 trials.csv | sort | uniq -c | grep -E 'crash|hang'
      2 crash,SIGSEGV
      3 hang,over 0.5 s

# The same by brute force, with other numbers of workers, and where it is killed in between.

$ bash fragile --store plain.db --brute-force; bash fragile --store many.db --workers 5
> (timeout -s KILL 1.2 bash fragile --store killed.db || true) 2>/dev/null
> [ -e killed.db ] && more=--resume || more=; bash fragile --store killed.db $more
> for other in plain many killed; do trocar inject export $other.db -o $other.csv -q; cmp $other.csv trials.csv; done

# No child outlives a command that was killed.

$ sleep 0.2; ps -eo args | grep -c '[f]ragile.onnx'
0
[exit 1]

$ trocar inject report run.db --by bit | grep -E '^(Crash|Hang|Failed) '
Crash           2   4.5 % ...
Hang            3   6.8 % ...
Failed          0   0.0 % ...

$ trocar inject export run.db -o everything.json -q --table everything
> python3 -c 'import json; print(json.load(open("everything.json"))["campaign"][0]["schema_version"])'
3

# One again: what a crash is, is said.

$ trocar inject replay run.db --engine onnxruntime,custom_ops=$(realpath test-tools/custom_ops.so) --fault $(awk -F, '$3 == "crash" {print $1; exit}' trials.csv) | grep -E 'Outcome|store'
  Outcome                       crash  SIGSEGV
  As in the store               yes
