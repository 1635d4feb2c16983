# Programs of ExecuTorch, and the engine that runs them.

$ cp "$TROCAR_SOURCE"/tests/formats/executorch/* "$TROCAR_SOURCE"/models/digits.* .

$ trocar summary net.pte --no-run --select 'op:0' | sed -n '/^Model/,/^$/p'
Model
  File              net.pte
  Size              8.33 KiB
  Format            executorch
  Inputs            value_12: f32[2,3,8,8]
  Outputs           value_77: f32[2,5]
  Ops               12
  Shapes            declared in the file

$ trocar run net.pte --input net_x.npy --output torch_said -q
$ cp torch_said/*.npy a.npy
$ trocar rules check onnx aten | sed -n '/Passed/p;/Rule/p'
Rules tried on both sides
  Passed ... 158

$ trocar convert digits.onnx digits.pte --shape batch=4 -q
$ trocar convert digits.pte again.pte -q && cmp digits.pte again.pte
$ trocar summary digits.pte --no-run | grep -E '^  (Inputs|Outputs|Ops) '
  Inputs            image: f32[4,1,8,8]
  Outputs           logits: f32[4,10]
  Ops               13

$ trocar convert net.pt2 from_torch.pte -q
$ trocar run from_torch.pte --input net_x.npy --output from_torch -q
$ cmp from_torch/*.npy a.npy
$ trocar convert net.pte net.onnx -q
$ trocar run net.onnx --input net_x.npy --output from_onnx -q
$ trocar compare digits.onnx --engine onnxruntime --engine executorch --shape batch=2 -q

$ trocar split digits.onnx lab --to executorch --shape batch=1 -q
$ ls lab/layers/0000_Conv__stem_conv_Conv
bin
manifest.json
model.pte
npy
test_data_set_0
$ trocar lab run lab --engine executorch --jobs 2 -q
$ trocar compare lab -q
$ trocar split net.pt2 torch.lab --to executorch -q
$ trocar lab run torch.lab --engine executorch -q
$ trocar compare torch.lab -q

$ trocar split models/lstm.onnx some.lab --to executorch -q; cat some.lab/layers/*/error.txt
LSTM '/lstm1/LSTM' cannot be mapped to aten: no rule maps LSTM
LSTM '/lstm2/LSTM' cannot be mapped to aten: no rule maps LSTM
$ trocar split digits.onnx other --to keras
trocar: layers cannot be written as 'keras'
  hint: --to takes executorch, onnx, tflite
[exit 2]

$ trocar run branches.pte --fill random -q
$ trocar convert branches.pte branches.onnx
Mapping
  From               aten
  To                 onnx
  Ops mapped         6  of 10
  Impossible         4
  Ops made           0
  Changes of layout  0  0 before they were joined

Ops
Op                              Number  State       Rule  Why                             First
────────────────────────────────────────────────────────────────────────────────────────────────────
executorch.jump_false                2  impossible        no rule maps ex…rch.jump_false  jump_false
executorch.move                      2  impossible        no rule maps executorch.move    value_7
aten.add.Tensor                      1  mapped      add                                   value_12
aten.gt.Scalar                       1  mapped      gt                                    value_5
aten.mul.Tensor                      1  mapped      mul                                   value_18
aten.sum.dim_IntList                 1  mapped      sum                                   value_1
dim_order_ops._…r_copy.default       2  mapped      to                                    value_9

4 ops cannot be mapped, so nothing was written; --rules FILE adds rules
[exit 1]
$ trocar run net.pte --fill random --engine executorch:/nowhere
trocar: there is no ExecuTorch at '/nowhere'
  hint: pip install executorch==1.5.1, or --engine executorch:PATH names a folder that holds it
[exit 4]
$ head -c 3000 net.pte > cut.pte; trocar summary cut.pte
trocar: 'cut.pte': its header speaks of more bytes than the file has
[exit 3]
$ trocar convert digits.onnx open.pte --rules "$TROCAR_SOURCE"/src/mapping/rules/onnx-tflite.map
trocar: input 'image' (f32[batch,1,8,8]): 'batch' must be given
  hint: sizes are given with --shape batch=1
[exit 3]
