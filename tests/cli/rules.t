# Rules are data, and every one that has a test is tried on engines of both dialects.

$ trocar rules list --json | python3 -c "import json, sys; print(sorted((r['from'], r['to']) for r in json.load(sys.stdin)['tables']['mappings']))"
[('aten', 'aten'), ('aten', 'onnx'), ('mxnet', 'onnx'), ('onnx', 'aten'), ('onnx', 'tflite'), ('tf', 'onnx'), ('tflite', 'onnx')]
$ printf 'mapping tflite to onnx 21;\nrule mine { match y = custom.Mine(x); y = Neg(x); untested "there is no engine"; }\n' > mine.map
$ trocar rules show tflite onnx --rules mine.map --json | python3 -c "import json, sys; print(json.load(sys.stdin)['tables']['rules'][0])"
{'ops': 'custom.Mine', 'rule': 'mine', 'makes': 'Neg', 'tests': 0, 'untested': 'there is no engine'}
$ trocar rules check tflite onnx --rule CONV_2D
Rules tried on both sides
  Cases ... 34
  Passed ... 34
...
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
  Cases ... 1
  Passed ... 0
...
Rules that fail
Rule  Case  Why
───...
X ... they differ by ..., 1e-05 is allowed
[exit 1]
$ trocar convert models/lstm.onnx lstm.onnx --rules bad.map
trocar: there is nothing to map: both files speak the same dialect
[exit 2]
