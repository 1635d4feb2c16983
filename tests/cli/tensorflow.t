# SavedModels are folders; they run mapped to ONNX, and their reports speak of TensorFlow's ops.

$ trocar summary .deps/models/nmp --shape serving_default_input_2=1,43844,1 | sed -n '1,/Shapes/p;/^  MACs/p;/^  Coverage/p'
Model
  File              .deps/models/nmp/saved_model.pb
  Size              1.03 MiB  without external data
  External data     219 KiB
  Format            tensorflow
  IR version        1
  Opsets            tf 561
  Producer          tensorflow 2.4.1
  Metadata          tags: serve
                    other signature: __saved_model_init_op
                    nodes left out: 127
                    calls inlined: 2
  Signatures        serving_default: input_2 → contour, note, onset
  Inputs            serving_default_input_2: f32[?,43844,1] → 1x43844x1
  Outputs           StatefulPartitionedCall: f32[?,172,264] → 1x172x264
                    StatefulPartitionedCall:1: f32[?,172,88] → 1x172x88
                    StatefulPartitionedCall:2: f32[?,172,88] → 1x172x88
  Ops               333
  Shapes            from a run on onnxruntime 1.31.1
  MACs              524,079,648  f32 100 %
  Coverage          100.0 %  72 counted, 261 without arithmetic, 0 not counted

$ trocar summary .deps/models/nmp --shape serving_default_input_2=1,43844,1 --select 'module:model_1.conv2d_5' | sed -n '/^Layer/,/^total/p'
Layer                     Type     Attributes         Output      Params        %     MACs        %
───────────────────────────────────────────────────────────────────────────────────────────────────
model_1/conv2d_5/Conv2D   Conv2D   k3×3 padding=SAME  1x172x88x1     297    0.8 %  4.495 M    0.9 %
model_1/conv2d_5/BiasAdd  BiasAdd                     1x172x88x1       1   <0.1 %        –        –
model_1/conv2d_5/Sigmoid  Sigmoid                     1x172x88x1       –        –        –        –
───────────────────────────────────────────────────────────────────────────────────────────────────
selected                  3 ops                                      298    0.8 %  4.495 M    0.9 %
total                     333 ops                                 35,214  100.0 %  524.1 M  100.0 %

$ trocar run .deps/models/nmp --fill random
trocar: input 'serving_default_input_2' (f32[?,43844,1]): dimension 0 must be given
  hint: sizes are given with --shape serving_default_input_2=1,43844,1
[exit 3]
$ trocar run .deps/models/nmp --fill random --shape serving_default_input_2=1,43844,1 --output out -q
$ ls out
StatefulPartitionedCall.npy
StatefulPartitionedCall_1.npy
StatefulPartitionedCall_2.npy

# Converted, and run with the same numbers.

$ trocar convert .deps/models/nmp nmp.onnx -q
$ trocar run nmp.onnx --fill random --shape serving_default_input_2=1,43844,1 --output again -q
$ cmp out/StatefulPartitionedCall_1.npy again/StatefulPartitionedCall_1.npy

# Frozen graphs. What no rule maps is named, and nothing is written.

$ cp "$TROCAR_SOURCE"/tests/formats/tensorflow/*.pb .
$ trocar summary frozen.pb --no-run --width 100 | head -16
Model
  File              frozen.pb
  Size              735 B
  Format            tensorflow
  Opsets            tf 1395
  Producer          tensorflow
  Inputs            x: f32[?,4]
  Outputs           out: f32
                    odd: unknown
  Ops               6
  Shapes            declared in the file

Layer  Type     Attributes              Output         Params        %  Zeros  Pattern       MACs  %
────────────────────────────────────────────────────────────────────────────────────────────────────
mul    MatMul                           f32                12   80.0 %  8.3 %  unstructured    –¹  –
add    BiasAdd                          f32                 3   20.0 %      –  –               –²  –
$ trocar convert frozen.pb frozen.onnx
Mapping
  From               tf
  To                 onnx
  Ops mapped         5  of 6
  Impossible         1
  Ops made           3
  Changes of layout  0  0 before they were joined

Ops
Op       Number  State       Rule                        Why                   First
────────────────────────────────────────────────────────────────────────────────────
Mystery       1  impossible                              no rule maps Mystery  odd
BiasAdd       1  mapped      BiasAdd                                           add
MatMul        1  mapped      MatMul                                            mul
NoOp          1  mapped      left out: it makes nothing                        guard
Softmax       1  mapped      Softmax                                           out
Split         1  mapped      Split                                             parts

1 op cannot be mapped, so nothing was written; --rules FILE adds rules
[exit 1]
$ trocar convert calls.pb calls.onnx -q
[exit 1]
$ trocar summary calls.pb --no-run | sed -n '/^Layer/,/^total/p'
Layer           Type             Attributes            Inputs                Output   MACs  %  FLOPs
────────────────────────────────────────────────────────────────────────────────────────────────────
layer           Mul                                    scalar, scalar        f32        –¹  –     –¹
named                                                  f32, f32              f32        –²  –     –²
├─ more         Mul                                    f32, f32              f32        –¹  –     –¹
└─ far          Exp                                    f32                   f32        –¹  –     –¹
odd             PartitionedCall  f=square              f32, scalar           unknown    –³  –     –³
└─ mul          Mul                                    f32, f32              unknown    –¹  –     –¹
deep                                                   unknown, unknown      unknown    –²  –     –²
├─ add          AddV2                                  unknown, unknown      f32        –¹  –     –¹
└─ again        PartitionedCall  f=endless             f32                   unknown    –⁴  –     –⁴
   ├─ add       AddV2                                  f32, f32              f32        –¹  –     –¹
   └─ again     PartitionedCall  f=endless             f32                   unknown    –⁵  –     –⁵
while           StatelessWhile   body=step cond=go_on  unknown               unknown    –⁴  –     –⁴
├─ cond         Less                                   unknown               unknown    –¹  –     –¹
└─ body         Mul                                    unknown, unknown      unknown    –¹  –     –¹
if              StatelessIf      else_branc…anch=keep  bool scalar, unknown  unknown    –³  –     –³
├─ then_branch  Identity                               unknown               unknown     –  –      –
└─ else_branch  Mul                                    unknown, unknown      unknown    –¹  –     –¹
────────────────────────────────────────────────────────────────────────────────────────────────────
total           15 ops                                                                  –²  –     –²

# Folders that are no SavedModel, and broken ones.

$ mkdir empty; trocar summary empty
trocar: 'empty' is a folder, not a file
[exit 3]
$ mkdir broken; head -c 500 .deps/models/nmp/saved_model.pb > broken/saved_model.pb; trocar summary broken
trocar: 'broken/saved_model.pb' is not a valid TensorFlow file: at byte 2: field 2 of 1084134 bytes runs past the end of its message, 494 remain
  hint: the file may be cut short, damaged, or of another format: get it again
[exit 3]
$ cp -r .deps/models/nmp half; chmod -R u+w half; head -c 100 .deps/models/nmp/variables/variables.index > cut; cp --remove-destination cut half/variables/variables.index; trocar summary half
trocar: 'half/variables/variables.index': this is no table of a checkpoint
[exit 3]
