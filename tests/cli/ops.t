# Operators are measured once, and explain the model.

$ trocar ops measure models/quantized.onnx --shape n=512 --threads 1 --db ops.db --seconds 0.05 --mode reuse -q
$ trocar ops measure models/quantized.onnx --shape n=512 --threads 1 --db ops.db --seconds 0.05 --mode reuse -q --report again.csv
$ tail -n 1 again.csv
quantized.onnx,4,4,0,0,...
$ trocar ops explain models/quantized.onnx --shape n=512 --threads 1 --db ops.db --target 0.1 --plot explained.svg; true
Operators
...
Explained
  Whole model ...
  Sum of operators ... 4 of 4 distinct ones × their calls
...
  Energy of the whole ...
...
  Cache mode           reuse
...
...: ... % of the model explained; 0.1 to 199.9 % were asked for
$ head -c 4 explained.svg
<svg[no newline]
$ trocar ops verify --db ops.db
Database
  measured        5
...
nothing is wrong with it
$ trocar ops list --db ops.db
Models
...
quantized.onnx  x f32 512x3x8x8  fused          4      4
...
...DequantizeLinear ... reuse ... measured ...
...
$ trocar ops export --db ops.db --as jsonl | head -c 8
{"host":[no newline]
$ trocar ops next models/quantized.onnx --shape n=512 --threads 1 --db ops.db
To be measured, the largest first
none
expected by what was measured; 90 % intervals

0 of 4 distinct operators are not in the database
$ trocar ops predict models/quantized.onnx --shape n=512 --threads 1 --db ops.db
...
  From measured operators ...
...
$ trocar ops predict models/quantized.onnx --shape n=4 --threads 1 --db ops.db
...
Model
  Predicted ... to ..., 90 %
...
$ trocar ops evaluate --db ops.db --plot p.svg --roofline r.svg
...
$ trocar ops merge ops.db --db all.db
Merged
          Measurements
Database         added
──────────────────────
ops.db               5
runs that were there are left alone; machines and engines are kept apart
$ trocar ops merge ops.db --db all.db
Merged
          Measurements
Database         added
──────────────────────
ops.db               0
runs that were there are left alone; machines and engines are kept apart

# The loop.

$ trocar ops explain models/quantized.onnx --shape n=512 --threads 1 --db until.db --until 50 --target 1 --seconds 0.05; true
Rounds
...

# What is wrong is said.

$ trocar ops list --db none.db
trocar: cannot open 'none.db': there is no such file
  hint: `trocar ops measure MODEL --db FILE` makes one
[exit 3]
$ trocar ops list --db models/quantized.onnx
trocar: 'models/quantized.onnx' is no database of operators
[exit 3]
$ trocar ops explain models/quantized.onnx --shape n=2 --threads 1 --db ops.db
trocar: the database does not have this model with these inputs
  hint: `trocar ops measure MODEL --db FILE` adds it
[exit 3]
$ trocar ops measure models/quantized.onnx --shape n=512 --db ops.db --mode warm
trocar: 'warm' is no cache mode
  hint: one of reuse, stream-inputs, stream-weights, cold, in-situ, chain
[exit 2]
$ trocar ops show zz --db ops.db
trocar: no operator has a key that begins with 'zz'
  hint: `trocar ops list --db FILE` lists them
[exit 3]
$ trocar ops merge ops.db --db ops.db
trocar: a database cannot be merged into itself
[exit 2]
$ printf 'operators:\n  - type: Conv\n    input: [f32 1x2]\n' > plan.yaml
$ trocar ops measure plan.yaml --db ops.db
trocar: plan.yaml:3: ...
  hint: ...
[exit 3]
