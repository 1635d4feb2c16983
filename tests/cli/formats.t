# Models of other ecosystems than ONNX. No engine runs their ops: shapes are those the files declare.

$ cp "$TROCAR_SOURCE"/tests/formats/pt2/*.pt2 "$TROCAR_SOURCE"/tests/formats/mxnet/n* .

$ trocar summary transformer.pt2 --shape s52=4
Model
  File              transformer.pt2
  Size              71.1 KiB
  Format            pt2
  IR version        8
  Opsets            aten 10
  Producer          torch 2.15.0...
  Metadata          schema version: 8.20
...
  Inputs            tokens: i64[s52,6] → 4x6
  Outputs           linear_8: f32[s52,6,16] → 4x6x16
  Dimensions        s52 from 2 to 64
  Ops               35
  Shapes            from a run on onnxruntime ...

Layer                           ×   Type                    Output                   Params     MACs
────────────────────────────────────────────────────────────────────────────────────────────────────
sym_size_int_1                      sym_size                i64 scalar                    –        –
embed                               embedding               4x6x8                       128        –
add                                 add                     4x6x8                        48        –
blocks                                                      4x6x8                     1,744  41.47 k
└─ blocks.[0-1]                 ×2                          4x6x8                     1,744  41.47 k
   ├─ norm1                     ×2  layer_norm              4x6x8                        32        –
   ├─ qkv                       ×2  linear                  4x6x24                      432  9.216 k
...
norm                                layer_norm              4x6x8                        16        –
head                                linear                  4x6x16                        –  3.072 k
────────────────────────────────────────────────────────────────────────────────────────────────────
total                               35 ops                                            1,936  44.54 k
...

$ trocar summary state.pt2 --no-run | grep updates
  Outputs           add: i64[] (updates buffer 'steps')
                    getitem_3: f32[3] (updates buffer 'norm.running_mean')
                    getitem_4: f32[3] (updates buffer 'norm.running_var')
                    add_2: i64[] (updates buffer 'norm.num_batches_tracked')
                    add_1: f32[] (updates input 'log')

$ trocar summary cnn.pt2 --no-run --select conv2d | sed -n '/^Layer/,/^total/p'
Layer ... Type ... Attributes ... Output ... Params ... MACs ...
───...
conv2d ... conv2d ... k3×3 s2 p1 ... 2x8x4x4 ... 216 ... 6.912 k ...
conv2d_1 ... conv2d ... k1×1 ... 2x4x4x4 ... 36 ... 1.024 k ...
conv2d_2 ... conv2d ... k3×3 p1 g4 ... 2x4x4x4 ... 76 ... 2.304 k ...
───...
selected ...
total ...

$ head -c 20000 cnn.pt2 > cut.pt2; trocar summary cut.pt2
trocar: 'cut.pt2': the directory of the archive is missing: is the file complete?
[exit 3]

# Modules of TorchScript: ifs and loops with their bodies, state, and what cannot be mapped.
$ cp "$TROCAR_SOURCE"/tests/formats/torchscript/*.pt .
$ trocar summary control.pt --no-run | sed -n '/^Layer/,/^total/p'
Layer           Type                Attributes  Output                      Params        %  MACs  %
────────────────────────────────────────────────────────────────────────────────────────────────────
sum             sum                             scalar                           –        –     –  –
gt              gt                  other=0     bool scalar                      –        –     –  –
Bool            Bool                            bool scalar                      –        –     –  –
x0              prim:If                         f32                             40  100.0 %     –  –
├─ then_branch  linear                          f32                             20   50.0 %     –  –
└─ else_branch  linear                          f32                             20   50.0 %     –  –
_0              lt                  a=0         bool scalar                      –        –     –  –
_0.3            prim:Loop                       bool scalar, … scalar, f32       –        –     –  –
├─ one          linear                          f32                              –        –     –  –
├─ tanh         tanh                            f32                              –        –     –  –
├─ _1           mul                 other=0.5   f32                              –        –     –  –
├─ x2           add                             f32                              –        –     –  –
├─ i0           add                 b=1         i64 scalar                       –        –     –  –
└─ _0.2         lt                              bool scalar                      –        –     –  –
x3.1            prim:Loop                       f32                              –        –     –  –
└─ x3           add                             f32                              –        –     –  –
size            size                dim=0       i64 scalar                       –        –     –  –
ListConstruct   prim:ListConstruct              sequence(f32)                    –        –     –  –
Loop            prim:Loop                       sequence(f32)                    –        –     –  –
├─ select.2     select              dim=0       f32                              –        –     –  –
├─ _2.2         relu                            f32                              –        –     –  –
└─ _3           append                          sequence(f32)                    –        –     –  –
_4              stack                           f32                              –        –     –  –
add             add                             f32                              –        –     –  –
────────────────────────────────────────────────────────────────────────────────────────────────────
total           24 ops                                                          40  100.0 %     –  –
$ trocar summary state.pt --no-run | grep -E "updates|Inputs"
  Inputs            x: f32
                    add.2: i64[] (updates attribute 'calls')
                    add.1: f32 (updates attribute 'seen')
Layer           Type     Attributes  Inputs       Output       Params        %  bytes  MACs  %
$ trocar convert writes.pt writes.onnx | sed -n '/^Ops$/,$p'
Ops
Op                  Number  State       Rule       Why                                    First
───────────────────────────────────────────────────────────────────────────────────────────────
aten.copy_.default       1  impossible             it writes to 'y' through a view of it  _2
aten.clone.default       1  mapped      same                                              y
aten.mul.Scalar          1  mapped      mul                                               mul
aten.select.int          1  mapped      select                                            _0
aten.tensor.float        1  mapped      tensor_of                                         _1

1 op cannot be mapped, so nothing was written; --rules FILE adds rules
$ trocar summary dict.pt
trocar: 'dict.pt' is a pickle of torch.save, with tensors and no program
  hint: load it with torch, and write the model with torch.export.save or torch.jit.save
[exit 3]

# What is only read has no parts; a model may be JSON, as saved comparisons are.
$ trocar partition cnn.pt2 parts --parts 2
trocar: parts of models of the format 'pt2' cannot be written
  hint: `trocar convert` maps it to onnx, whose parts can be
[exit 3]
$ trocar compare net-symbol.json --engine onnxruntime --engine reference --fill random --shape softmax_label=2 -q
