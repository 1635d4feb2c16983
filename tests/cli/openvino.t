# Another engine. What needs ops of ours inside its programs, or the graph that it makes of a model, is cut instead or says so.

$ trocar run models/lstm.onnx --engine openvino --fill random --shape time=4 --shape batch=2 -q

$ trocar dump models/lstm.onnx --engine openvino --fill random --shape time=4 --shape batch=2 --output ov.dump --tensors -q

$ trocar dump models/lstm.onnx --fill random --shape time=4 --shape batch=2 --output ort.dump --tensors -q

$ trocar diff ov.dump ort.dump --rtol 1e-3 --atol 1e-4 -q

$ trocar profile models/lstm.onnx --engine openvino --fill random --shape time=4 --shape batch=2 --runs 3
trocar: openvino does not tell what it makes of a model and what its ops take
  hint: --view source measures layers from outside
[exit 3]

$ trocar profile models/lstm.onnx --engine openvino --view source --fill random --shape time=4 --shape batch=2 --runs 3 -q
...

$ trocar run models/lstm.onnx --engine openvino,precision=f12 --fill random --shape time=4 --shape batch=2
trocar: engine option precision=f12 is unknown
  hint: precision takes f32 or bf16 or f16
[exit 2]

$ trocar run models/lstm.onnx --engine openvino,tea=1 --fill random --shape time=4 --shape batch=2
trocar: the engine openvino has no option 'tea'
  hint: it takes device=NAME, precision=f32|bf16|f16, mode=accuracy|performance, f64=refuse|f32 and config.KEY=VALUE
[exit 2]
