# Instruments from shared libraries.

$ trocar run models/loop.onnx --fill 1 --shape n=3 --input count=3 --tool tools/op_counter.so
Inputs
Name   Type        From
────────────────────────
count  i64 scalar  all 3
x      f32 3       ones

Outputs
Name   Type  Shape ...
──────────────────────────────────────────────────
total  f32   3   ...
steps  f32   3x3 ...

Time
  Compile        ...
  First run      ...

Programs
  Cut            none
  Programs       1  of 2 ops
  Optimised      engine  programs of one op are never optimised
  Isolated       no
  View           source
  Ops with taps  6  instruments inside the engine's program
  Ops with cuts  0  instruments between programs

Ops that ran
Type       Calls
────────────────
Add            3
Identity       3
Less           3
Loop           1
ReduceSum      3
Sub            1

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/op_counter.so,at=MaxPool --lowering cut
Inputs
Name   Type             From
────────────────────────────────────────
input  f32 1x3x224x224  random in [0, 1)

Outputs
Name    Type  Shape ...
──────────────────────────────────────────────────────────────────────
logits  f32   1x1000 ...

Time
  Compile        ...
  First run      ...

Programs
  Cut            none
  Programs       2  of 69 ops
  Optimised      engine  programs of one op are never optimised
  Isolated       no
  View           source
  Ops with taps  0  instruments inside the engine's program
  Ops with cuts  1  instruments between programs

Ops that ran
Type     Calls
──────────────
MaxPool      1

$ trocar run models/mobilenet_v2.onnx --fill random --shape batch=1 --tool tools/range_recorder.so,at=Gemm --view deployed | tail -n 5

Ranges
Op ...
──...
op ... (Gemm '/classifier/classifier.1/Gemm') ...

# The same bits whatever the lowering.

$ trocar run models/mobilenet_v2.onnx --fill random --shape batch=1 --optimize none --tool tools/noise.so,size=0.1 --lowering tap -o tap -q

$ trocar run models/mobilenet_v2.onnx --fill random --shape batch=1 --optimize none --tool tools/noise.so,size=0.1 --lowering cut -o cut -q

$ cmp tap/logits.npy cut/logits.npy && echo same
same

# In the deployed view an instrumented run has the bits of a plain one.

$ trocar run models/mobilenet_v2.onnx --fill random --shape batch=1 -o plain -q

$ trocar run models/mobilenet_v2.onnx --fill random --shape batch=1 --tool tools/op_counter.so --view deployed -o deployed -q

$ cmp plain/logits.npy deployed/logits.npy && echo same
same

$ trocar run models/mobilenet_v2.onnx --fill random --shape batch=1 --tool tools/op_counter.so --view deployed --lowering cut -o deployed_cut -q

$ cmp plain/logits.npy deployed_cut/logits.npy && echo same
same

# Weights that read as zero, noise, another activation.

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/prune.so,share=0.25 | tail -n 3
Pruned
  Layers               21
  Weights set to zero  2,919,...

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/replace_relu.so,limit=0 -o zeros -q

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/nan_finder.so | tail -n 2
NaN finder
  First bad op   none

# Faults.

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/op_counter.so,at=Convv
trocar: no op of the model matches type:Convv of the tool
  hint: near to it: Conv; --allow-empty runs it all the same
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/op_counter.so,at=Convv --allow-empty -q

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/op_counter.so,everywhere=1
trocar: the tool OpCounter has no setting everywhere
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/noise.so,size=much
trocar: size=much is no number
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/noise.so,size
trocar: 'size' is no setting of a tool
  hint: write key=value
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/nothing.so
trocar: there is no tool library 'tools/nothing.so'
[exit 3]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool models/resnet18.onnx
trocar: 'models/resnet18.onnx' cannot be loaded: invalid ELF header
  hint: a tool is a shared library for this machine, compiled against the headers of this Trocar
[exit 3]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool test-tools/no_tool.so
trocar: 'test-tools/no_tool.so' is no tool: it has no symbol trocar_tool
  hint: write TROCAR_TOOL(Type, "what it does") at its end
[exit 3]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool test-tools/other_version.so
trocar: 'test-tools/other_version.so' was compiled for version 0 of the tool interface, this Trocar has version 1
  hint: compile it again against the headers of this Trocar
[exit 3]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool test-tools/missing_symbol.so
trocar: 'test-tools/missing_symbol.so' cannot be loaded: undefined symbol: _ZN6trocar15nobody_has_thisEv
  hint: a tool is a shared library for this machine, compiled against the headers of this Trocar
[exit 3]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool test-tools/misbehave.so
trocar: the tool 'Misbehave' failed at op 68 (Gemm '/fc/Gemm'): something is wrong
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --isolate --tool test-tools/misbehave.so,how=crash
trocar: the process that ran the engine ended with SIGSEGV while running the model
[exit 4]

$ trocar run models/loop.onnx --fill 1 --shape n=3 --tool tools/op_counter.so,at=name:add --lowering cut
trocar: op 0 (Add 'add') stands in the body of another op, where only a tap can be
  hint: leave it out: Probe::outside_bodies()
[exit 3]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --view deployed
trocar: --view and --lowering are about tools, and none is given
  hint: give one with --tool ./mytool.so
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --tool tools/op_counter.so --lowering glue
trocar: --lowering cannot be 'glue'
  hint: one of: auto, tap, cut
[exit 2]

# Ops that the engine does not know: from a library of custom ops.

$ trocar run models/custom_domain.onnx --fill 2 --shape n=1 --engine onnxruntime,custom_ops=$PWD/test-tools/custom_ops.so --tool tools/op_counter.so | tail -n 6
Ops that ran
Type   Calls
────────────
Abs        1
Relu       1
Twist      1

$ trocar run models/custom_domain.onnx --fill 2 --shape n=1 --engine onnxruntime,custom_ops=nowhere.so
trocar: ONNX Runtime could not load custom ops from 'nowhere.so': Failed to load library nowhere.so with error: nowhere.so: cannot open shared object file: No such file or directory
[exit 4]
