# Tool libraries prepare inputs, make of outputs what decisions are taken from, and measure.

$ trocar inject models/transformer.onnx --fill random --faults 60 --tool tools/top_margin.so --store one.db -q
> trocar inject export one.db -o one.csv --table metrics -q; head -n 1 one.csv; grep -c ',margin,' one.csv
trial,input,name,number
60

# The same numbers with any number of workers, from a file, and in a replay.

$ trocar inject models/transformer.onnx --fill random --faults 60 --tool tools/top_margin.so --store many.db --workers 3 --no-isolate -q
> trocar inject export many.db -o many.csv --table metrics -q; cmp one.csv many.csv
> printf 'model: models/transformer.onnx\ninputs: {fill: random}\ntrials: 60\nfaults: {target: weights}\ntools: tools/top_margin.so\nstore: file.db\n' > c.yaml
> trocar inject c.yaml -q; trocar inject export file.db -o file.csv --table metrics -q; cmp one.csv file.csv
> trocar inject replay one.db --fault 5 | grep store
  As in the store               yes

# Post-processing and other inputs give other numbers.

$ for how in scale=1 softmax=1 scale=0.5; do trocar inject models/lstm.onnx --fill random --faults 20 --tool tools/top_margin.so,$how --store $how.db -q; trocar inject export $how.db -o $how.csv --table metrics -q; cmp -s scale=1.csv $how.csv || echo other numbers; done
other numbers
other numbers

# With a command, too.

$ ln -s "$(python3 -c 'import sys; print(sys.executable)')" py
> trocar inject models/transformer.onnx --fill random --faults 20 --tool tools/top_margin.so --metric "./py -uc 'import sys; [print(1) for line in sys.stdin]'" --store both.db -q
> trocar inject report both.db --by bit | grep -A 4 '^Metrics$'
Metrics
Metric  Results ...
...
margin       20 ...
metric       20 ...

$ trocar inject models/transformer.onnx --fill random --faults 20 --tool tools/top_margin.so --tool tools/top_margin.so
trocar: there are two metrics named 'margin'
[exit 3]

$ trocar inject models/transformer.onnx --fill random --faults 20 --tool tools/op_counter.so
trocar: the tool OpCounter prepares no inputs, makes nothing of outputs and measures nothing
  hint: a tool with ports is for `trocar run --tool`; trocar/evaluation.h says how one for campaigns is written
[exit 2]

$ trocar inject models/transformer.onnx --fill random --faults 20 --tool tools/top_margin.so,scal=2
trocar: the tool TopMargin has no setting scal
[exit 2]
