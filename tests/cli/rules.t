# Rules are data, and every one that has a test is tried on engines of both dialects.

$ trocar rules list --json | python3 -c "import json, sys; print(sorted((r['from'], r['to']) for r in json.load(sys.stdin)['tables']['mappings']))"
[('aten', 'aten'), ('aten', 'onnx'), ('mxnet', 'onnx'), ('onnx', 'aten'), ('onnx', 'tflite'), ('tf', 'onnx'), ('tflite', 'onnx')]
$ printf 'mapping tflite to onnx 21;\nrule mine { match y = custom.Mine(x); y = Neg(x); untested "there is no engine"; }\n' > mine.map
$ trocar rules show tflite onnx --rules mine.map --json | python3 -c "import json, sys; print(json.load(sys.stdin)['tables']['rules'][0])"
{'ops': 'custom.Mine', 'rule': 'mine', 'makes': 'Neg', 'tests': 0, 'untested': 'there is no engine'}
$ trocar rules check tflite onnx --rule CONV_2D
Rules tried on both sides
  Source ... litert 2.3.0
  Target ... onnxruntime 1.31.1
  Cases ... 34
  Passed ... 34
...
$ trocar rules check tflite onnx --rule CONV_2D --target reference | grep -E 'Target|Passed'
  Target ... reference ...
  Passed ... 34
$ trocar rules check tflite onnx --source nowhere
trocar: there is no engine named 'nowhere'
  hint: known engines: ...
[exit 2]
$ trocar rules check tflite onnx --rule NOTHING
trocar: there is no rule 'NOTHING'
[exit 2]
$ trocar rules check tflite nowhere
trocar: there are no rules that map tflite to nowhere
  hint: there are rules for ...
[exit 3]
$ printf 'mapping tflite to onnx 21;\nrule X {\n  match y = ABS(x)\n}\n' > wrong.map
$ trocar rules check tflite onnx --rules wrong.map
trocar: wrong.map:4: ';' is expected, not '}'
[exit 3]
$ printf 'mapping tflite to onnx 21;\nrule X { match y = ABS(x); y = Neg(x); test { x: f32[3]; } }\n' > bad.map
$ trocar rules check tflite onnx --rules bad.map --rule X
Rules tried on both sides
  Source ...
  Target ...
  Cases ... 1
  Passed ... 0
...
Rules that fail
Rule  Case  Why
───...
X ... they differ by ..., 1e-05 is allowed
[exit 1]

# What an engine cannot run is told, and fails nothing; a rule that must not apply says so.
$ cat > own.map <<'END'
> mapping aten to onnx 21;
> rule mine {
>     match y = aten.relu.default | aten.no_such_op.default(x);
>     require dtype(x) != "i64", "integers have no rule";
>     y = Relu(x);
>     test { x: f32[2, 3] | f32[] | f64[2] = [-1.0, 2.0]; }
>     test { as aten.no_such_op.default; x: f32[2]; }
>     test { x: i64[2]; declined; }
> }
> END
$ trocar rules check aten onnx --rules own.map --rule mine --source executorch
Rules tried on both sides
  Source ... executorch ...
  Target ... onnxruntime ...
  Cases ... 5
  Passed ... 4
  Cannot be tried ... 1
...
Cannot be tried
Rule  Case  Why
───...
mine ... ExecuTorch has no kernel for aten::no_such_op.default

$ trocar convert models/lstm.onnx lstm.onnx --rules bad.map
trocar: there is nothing to map: both files speak the same dialect
[exit 2]
