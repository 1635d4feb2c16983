# The same model twice: the same bits.

$ trocar dump models/transformer.onnx --fill 1 --shape batch=1 --shape length=6 --tensors -o a -q

$ trocar dump models/transformer.onnx --fill 1 --shape batch=1 --shape length=6 -o b -q

$ trocar diff a b
Comparison
  Tensors in both     96
  Same bits           96
  Within              0  |b − a| ≤ 0 + 0·|a|
  Differ              0
  Other type          0
  Other shape         0
  Not comparable      0
  Only in A           0
  Only in B           0
  First that differs  –¹
¹ none differs

# Other inputs: the first tensor that differs, and the worst ones in their order.

$ trocar dump models/transformer.onnx --input tokens=2 --fill 1 --shape batch=1 --shape length=6 --tensors -o c -q

$ trocar diff a c --worst 3 --width 100
trocar: warning: the input 'tokens' of set 0 is not the same in both
Tensors
Op  Type    Tensor                 Outcome  By       Max abs  Max rel   SQNR dB      Off  NaN≠  Inf≠
────────────────────────────────────────────────────────────────────────────────────────────────────
72  MatMul  /layers.1/…l_output_0  differs  tensors  11.0766  14.3326  -4.63423  100.0 %     0     0
73  Div     /layers.1/…v_output_0  differs  tensors  2.76914  14.3326  -4.63423  100.0 %     0     0
74  Add     /layers.1/…d_output_0  differs  tensors  2.76914  14.3326  -4.63423  100.0 %     0     0
not shown: Mean abs, ULP, Cosine, Worst at, A, B; --json or a wider terminal has all

Comparison
  Tensors in both     96
  Same bits           23
  Within              0  |b − a| ≤ 0 + 0·|a|
  Differ              73
  Other type          0
  Other shape         0
  Not comparable      0
  Only in A           0
  Only in B           0
  First that differs  /embedding/Gather_output_0  op 0 (Gather '/embedding/Gather')
[exit 1]

# Without tensors, statistics are compared, and that is said.

$ trocar diff c b --rtol 10 --atol 10 -q

$ trocar diff b c --rtol 10 --atol 10 | tail -n 2
trocar: warning: the input 'tokens' of set 0 is not the same in both
where tensors were not written, their statistics were compared: that numbers agree one by one is not
known there

# Tensors in one dump only.

$ trocar dump models/transformer.onnx --fill 1 --shape batch=1 --shape length=6 --at MatMul -o part -q

$ trocar diff a part | tail -n 12
Comparison
  Tensors in both     16
  Same bits           16
  Within              0  |b − a| ≤ 0 + 0·|a|
  Differ              0
  Other type          0
  Other shape         0
  Not comparable      0
  Only in A           80
  Only in B           0
  First that differs  –¹
¹ none differs

$ trocar diff a part --common -q

# What is no dump.

$ mkdir none && trocar diff a none
trocar: 'none' is no dump: it has no index.jsonl
  hint: `trocar dump MODEL` writes one
[exit 3]

$ trocar diff a nowhere
trocar: there is no 'nowhere'
  hint: two model files, or two folders of `trocar dump`, are compared
[exit 3]

# Two models.

$ trocar diff models/transformer.onnx models/transformer.onnx
Comparison
  Ops in both         96  of 96 and 96
  Only in A           0
  Only in B           0
  Ops changed         0
  Same constants      59
  Constants changed   0
  Types changed       0
  Inputs and outputs  0
  Metadata            0
  Ops renamed         0  no difference without --names
  Tensors renamed     0
  Same                yes

$ trocar prune models/transformer.onnx p.onnx --sparsity 0.5 --at 'name:*layers.0*' -q; trocar diff models/transformer.onnx p.onnx --width 100
Constants changed
Constant                 Read by                  Type         Changed    Max abs  SQNR dB    Cosine
────────────────────────────────────────────────────────────────────────────────────────────────────
layers.0.at…uery.weight  /layers.0/a…uery/MatMul  f32[64,64]     2,048  0.0834727  11.4906  0.963873
layers.0.at….key.weight  /layers.0/a…/key/MatMul  f32[64,64]     2,048  0.0840968  11.1042  0.960443
layers.0.at…alue.weight  /layers.0/a…alue/MatMul  f32[64,64]     2,048  0.0839034  11.5725  0.964561
layers.0.at….out.weight  /layers.0/a…/out/MatMul  f32[64,64]     2,048  0.0845061   11.436  0.963407
layers.0.linear1.weight  /layers.0/l…ear1/MatMul  f32[64,128]    4,096   0.083712  11.5562  0.964425
layers.0.linear2.weight  /layers.0/l…ear2/MatMul  f32[128,64]    4,096  0.0610266  11.3987  0.963086
not shown: Mean abs; --json or a wider terminal has all

Comparison
  Ops in both         96  of 96 and 96
  Only in A           0
  Only in B           0
  Ops changed         0
  Same constants      53
  Constants changed   6
  Types changed       0
  Inputs and outputs  0
  Metadata            0
  Ops renamed         0  no difference without --names
  Tensors renamed     0
  Same                no
[exit 1]

$ trocar diff models/transformer.onnx p.onnx --ignore weights -q

$ trocar diff models/transformer.onnx p.onnx --atol 9 -q

$ trocar diff models/resnet18.onnx models/mobilenet_v2.onnx -q
[exit 1]

$ trocar diff models/transformer.onnx p.onnx --ignore names
trocar: --ignore names is no kind of difference
  hint: metadata, types and weights are, with commas between them
[exit 2]

$ trocar diff models/transformer.onnx a
trocar: 'models/transformer.onnx' is a file and 'a' a folder
  hint: two models are compared, or two dumps
[exit 2]

$ trocar diff a b --names
trocar: --ignore and --names are about models, and these are dumps
[exit 2]

# What is not there is named.

$ trocar diff models/transformer.onnx nothing.onnx
trocar: there is no 'nothing.onnx'
  hint: two model files, or two folders of `trocar dump`, are compared
[exit 3]
