# One input, given faults: their outcomes in the store. The model is y = x · w + b and more.

$ trocar inject models/lstm.onnx --fill random --fault 'nothing [0] flip 3'
trocar: there is no tensor 'nothing' in the deployed view of the model
...
[exit 2]

$ trocar inject models/transformer.onnx --fill random --target weights --faults 200 --store run.db --seed 3 -q

$ trocar inject models/transformer.onnx --fill random --target weights --faults 200 --store run.db --seed 3
trocar: 'run.db' is there already
  hint: --resume goes on with it; or name another --store
[exit 2]

$ trocar inject models/transformer.onnx --fill random --target weights --faults 200 --store run.db --seed 3 --resume -q

$ trocar inject models/transformer.onnx --fill random --target weights --faults 200 --store run.db --seed 4 --resume
trocar: the store 'run.db' is of another set of data: ...
  hint: name another file for this campaign
[exit 2]

$ trocar inject models/transformer.onnx --fill random --target weights --faults 200 --store other.db --resume
trocar: there is no store 'other.db' to go on with
  hint: leave --resume out to begin
[exit 3]

# A model that differs in a byte is another one, whatever is printed.

$ cp models/lstm.onnx own.onnx
$ trocar inject own.onnx --fill random --faults 20 --store own.db -q
$ trocar inject replay own.db --fault 3 --json > own.json
$ trocar inject report own.db --json | grep -c "\"model_sha256\":\"$(sha256sum < own.onnx | cut -c 1-64)\""
1
$ printf '\x7a\x00' >> own.onnx
$ trocar inject replay own.db --fault 3
trocar: 'own.onnx' is not the model of the campaign
  hint: --model names it
[exit 2]
$ trocar inject own.onnx --fill random --faults 20 --store own.db -q --resume
trocar: the store 'own.db' is of another model: ...
...
[exit 2]

# Shards put together are the whole; brute force gives the same rows.

$ for i in 1 2 3; do trocar inject models/transformer.onnx --fill random --target weights --faults 200 --store shard$i.db --seed 3 --shard $i/3 -q; done
$ trocar inject merge shard1.db shard2.db shard3.db --store all.db -q
$ trocar inject export all.db -o all.csv -q; trocar inject export run.db -o run.csv -q; cmp all.csv run.csv
$ trocar inject models/transformer.onnx --fill random --target weights --faults 200 --store plain.db --seed 3 --brute-force -q
$ trocar inject export plain.db -o plain.csv -q; cmp plain.csv run.csv

# Killed at some moment, it goes on and ends with the same rows.

$ campaign() { trocar inject models/transformer.onnx --fill random --target weights,activations --faults 6000 --seed 5 -q "$@"; }
> campaign --store whole.db
> for after in 0.4 0.7 1 1.5; do [ -e killed.db ] && more=--resume || more=; (timeout -s KILL $after bash -c "$(declare -f campaign); campaign --store killed.db $more" || true) 2>/dev/null; done
> [ -e killed.db ] && more=--resume || more=; campaign --store killed.db $more
> for run in whole killed; do trocar inject export $run.db -o $run.csv -q; done; cmp whole.csv killed.csv && wc -l < whole.csv
6001

# One again.

$ trocar inject replay run.db --fault 5
Trial                         5
Fault                         ...
...
  As in the store               yes
...

$ trocar inject replay run.db --fault 5000
trocar: 'run.db' has no trial 5000
  hint: it has 200 trials with results
[exit 2]

# What cannot be.

$ trocar inject models/transformer.onnx --fill random --target wieghts
trocar: --target takes weights, activations, reads, inputs, constants, not 'wieghts'
  hint: did you mean 'weights'?
[exit 2]

$ trocar inject models/transformer.onnx --fill random --at 'name:nothing*'
trocar: there are no weights to change at 'name:nothing*'
...
[exit 2]

$ trocar inject models/transformer.onnx --fill random --bits 40
trocar: f32 has bits 0 to 31: there is no bit 40
[exit 2]

$ trocar inject models/transformer.onnx --fill random --model explode
trocar: 'explode' is no fault model
...
[exit 2]

$ trocar inject models/transformer.onnx --fill random --shard 4/3
trocar: '4/3' is no shard
  hint: write --shard 3/16
[exit 2]

$ : > empty.txt; trocar inject models/transformer.onnx --fill random --faults-from empty.txt
trocar: 'empty.txt' has no faults
...
[exit 3]

$ trocar inject models/random_ops.onnx --fill random --target activations
trocar: onnxruntime 1.31.1 does not give the same bits twice for this model: what a fault does cannot be told from that
...
[exit 3]

$ trocar inject models/transformer.onnx --data none
trocar: ...
...
[exit 3]

# How long, and for which claim.

$ trocar inject plan models/lstm.onnx --fill random --target weights --per layer --faults 100
Faults there are            204,800
Trials                      100
Inputs for each             1
One run without faults      ...
...
Faults for a claim
...
weights / /lstm1/LSTM  106,496      52   13.6 %
weights / /lstm2/LSTM   98,304      48   14.1 %
