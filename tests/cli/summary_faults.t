# What `trocar summary` does when it cannot do everything.

$ trocar summary
trocar: summary needs MODEL: Model file; several with --configs
  hint: `trocar summary --help` lists the options
[exit 2]

$ trocar summary models/resnet18.onnx models/resnet50.onnx
trocar: summary takes one model
  hint: with --configs it takes several and compares their layers
[exit 2]

$ trocar summary models/none.onnx
trocar: there is no file 'models/none.onnx'
  hint: did you mean 'models/loop.onnx'?
[exit 3]

$ trocar summary models/resnet18.onnx --sort size
trocar: --sort cannot be 'size'
  hint: one of: order, macs, params, bytes
[exit 2]

$ trocar summary models/resnet18.onnx --depth -1
trocar: --depth and --top take numbers from 0 on
[exit 2]

$ trocar summary models/resnet18.onnx --select 'Conv &'
trocar: selector 'Conv &', character 7: a term is missing
  hint: for example: Conv, 'type:*Pool & module:layer3.*', index:3..9, name:/head/*
[exit 2]

$ trocar summary models/custom_domain.onnx | sed -n '/^Not counted/,/^Parameters/p'
trocar: warning: 2 of 3 ops did not run, so shapes after them are those the file declares, if any; the first is op 1 (Twist 'twist'): ...
Not counted
Type               Ops  Reason                         Example
──────────────────────────────────────────────────────────────
com.example:Twist    1  no rule for com.example:Twist  twist
Abs                  1  an op before it did not run    after

Parameters

$ trocar summary models/no_shapes.onnx | sed -n '/^Layer/,/^total/p'
trocar: warning: nothing was run, shapes are those the file declares: input 'x' (f32): the rank must be given
Layer  Type  Inputs  Output   MACs  %  FLOPs  Read  Written  FLOP/B
───────────────────────────────────────────────────────────────────
relu   Relu  f32     unknown    –¹  –     –¹    –²       –²       –
───────────────────────────────────────────────────────────────────
total  1 op                     –³  –     –³    –⁴       –⁴       –

$ trocar summary models/no_shapes.onnx --shape x=2,3 | sed -n '/^Layer/,/^total/p'
Layer  Type  Inputs  Output  MACs  %  FLOPs  Read  Written  FLOP/B
──────────────────────────────────────────────────────────────────
relu   Relu  2x3     2x3        –  –      6  24 B     24 B   0.125
──────────────────────────────────────────────────────────────────
total  1 op                     –  –      6  24 B     24 B   0.125

$ trocar summary models/resnet18.onnx --engine onnxruntime:/nowhere | sed -n '/Shapes/p'
trocar: warning: nothing was run, shapes are those the file declares: there is no ONNX Runtime at ...
  Shapes            declared in the file, with batch=1

$ trocar summary models/resnet18.onnx --no-run --no-weights --json | python3 -c "
> import json, sys
> s = json.load(sys.stdin)['sections']
> print(s['parameters']['parameters'], s['parameters']['zero_ratio'], s['parameters']['zero_ratio_reason'])"
11689512 None the values were not looked at
