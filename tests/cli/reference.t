# Trocar's own engine needs nothing and is always there.

$ trocar run models/lstm.onnx --engine reference --fill random --shape time=3 --shape batch=2
Inputs
...
Outputs
...

$ trocar summary models/lstm.onnx --engine reference --shape time=3 --shape batch=2
...
Memory
...

$ trocar dump models/lstm.onnx --engine reference --fill random --shape time=3 --shape batch=2 --output whole > log

# An op that it lacks is named before anything runs.

$ trocar run models/microsoft_ops.onnx --engine reference --fill random --shape n=2
trocar: ...the reference engine has no op com.microsoft...
...
[exit 3]

# Rounded once per op, so that cutting changes nothing.

$ trocar run models/lstm.onnx --engine reference --fill random --shape time=3 --shape batch=2 --output whole_out > log

$ trocar run models/lstm.onnx --engine reference --fill random --shape time=3 --shape batch=2 --cut all --output cut_out > log

$ diff -r whole_out cut_out
