# Two sides are needed, the first one is the reference.

$ trocar compare models/if.onnx --engine onnxruntime
trocar: a comparison needs two sides
  hint: give --engine twice, the reference first, or one and --command or --against
[exit 2]
$ trocar compare models/if.onnx
trocar: a comparison needs two sides
  hint: give --engine twice, the reference first, or one and --command or --against
[exit 2]
$ trocar compare models/if.onnx --engine onnxruntime --engine onxruntime
trocar: there is no engine named 'onxruntime'
  hint: known engines: executorch, litert, onnxruntime...
[exit 2]
$ trocar compare models/if.onnx --engine onnxruntime --engine onnxruntime,threads=few
trocar: 'onnxruntime,threads=few': threads=few is no number
[exit 2]
$ trocar compare models/if.onnx --engine onnxruntime --command './runner'
trocar: the command './runner' names no {model}
  hint: it is given files in the place of {model}, {inputs} and {outputs}
[exit 2]
$ trocar compare models/if.onnx --engine onnxruntime --engine onnxruntime --by segment
trocar: --by segment needs --cut
  hint: --cut 'Add' ends a layer after each Add
[exit 2]
$ trocar compare models/if.onnx --engine onnxruntime --engine onnxruntime --tolerance Add
trocar: 'Add' is no tolerance of a layer
  hint: write GLOB=RTOL[,ATOL], as in 'Softmax=1e-3,1e-6'
[exit 2]
$ trocar compare models/if.onnx --engine onnxruntime --engine onnxruntime --memory-limit much
trocar: 'much' is no size
  hint: write 512M or 4G
[exit 2]

# What is random cannot be compared, and says so.

$ trocar compare models/random_ops.onnx --engine onnxruntime --engine onnxruntime,optimize=none --all --width 120
Layers
                                               ×             Rel
#  Type          Layer   Verdict       tolerance  Max abs  error  Arriving  SQNR dB    Off  Why
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
0  RandomNormal  random  INCOMPARABLE         –¹       –¹     –¹        –¹  –¹          –¹  the reference gives other
                                                                                            values each time: the layer
                                                                                            is random
1  Add           add     PASS                  0        0      0         0  inf      0.0 %
¹ not compared
not shown: Ampl., Arriving verdict, ULP, Cosine, Worst at, There, Here; --json or a wider terminal has all

Comparison
  Reference         onnxruntime ...
  Against it        onnxruntime ... (optimize=none)  1 PASS, 0 WARN, 0 FAIL, 1 INCOMPARABLE
  First that fails  –¹
  Furthest off      layer 1 (Add 'add')  0 times its tolerance
  Error at the end  0  relative, after layer 1 (Add 'add')
¹ none fails

input 'x': f32 1x4, random in [0, 1)
input 'x': 'n' taken as 1

# A command from outside that crashes, and one that never ends.

$ trocar compare models/lstm.onnx --engine onnxruntime --command 'kill -SEGV $$ {model} {outputs}' --width 120
Layers
                                                 ×             Rel
#  Type       Layer        Verdict       tolerance  Max abs  error  Arriving  SQNR dB  Off  Why
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
0  LSTM       /lstm1/LSTM  INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹  the command crashed
                                                                                            (SIGSEGV)
1  Transpose  /Transpose   INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹  the command crashed
                                                                                            (SIGSEGV)
2  Reshape    /Reshape     INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹  the command crashed
                                                                                            (SIGSEGV)
3  LSTM       /lstm2/LSTM  INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹  the command crashed
                                                                                            (SIGSEGV)
¹ not compared
not shown: Ampl., Arriving verdict, ULP, Cosine, Worst at, There, Here; --json or a wider terminal has all

Comparison
  Reference         onnxruntime ...
  Against it        command:kill -SEGV $$ {model} {outputs}  0 PASS, 0 WARN, 0 FAIL, 4 INCOMPARABLE
  First that fails  –¹
  Error at the end  –²  relative, after layer 3 (LSTM '/lstm2/LSTM')
¹ none fails
² not compared

input 'x': f32 1x1x8, random in [0, 1)
input 'h0': f32 2x1x16, random in [0, 1)
input 'c0': f32 2x1x16, random in [0, 1)
input 'x': 'time', 'batch' taken as 1
input 'h0': 'batch' taken as 1
input 'c0': 'batch' taken as 1
[exit 1]
$ trocar compare models/if.onnx --engine onnxruntime --command 'sleep 60; {model} {outputs}' --time-limit 2 --width 120
Layers
                                       ×             Rel
#  Type  Layer   Verdict       tolerance  Max abs  error  Arriving  SQNR dB  ULP  Off  Worst at  Why
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
0  If    choose  INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹   –¹        –¹  the command was not
                                                                                                 done within 2 s
1  Relu  after   INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹   –¹        –¹  the command was not
                                                                                                 done within 2 s
¹ not compared
not shown: Ampl., Arriving verdict, Cosine, There, Here; --json or a wider terminal has all

Comparison
  Reference         onnxruntime ...
  Against it        command:sleep 60; {model} {outputs}  0 PASS, 0 WARN, 0 FAIL, 2 INCOMPARABLE
  First that fails  –¹
  Error at the end  –²  relative, after layer 1 (Relu 'after')
¹ none fails
² not compared

input 'flag': bool scalar, random in 0…1
input 'x': f32 1, random in [0, 1)
input 'x': 'n' taken as 1
[exit 1]

# A lab wants a folder of its own.

$ mkdir used && touch used/file && trocar split models/if.onnx used
trocar: 'used' has something in it
  hint: a lab is made in a folder of its own: name a new one, or empty this one
[exit 2]
$ trocar split models/if.onnx new --tensors npz
trocar: 'npz' is no kind of file for tensors
  hint: --tensors takes npy, bin and pb, with commas between them
[exit 2]
$ trocar split models/if.onnx new --select Conv
trocar: no op of the model matches --select type:Conv
  hint: `trocar summary` lists its ops
[exit 2]
$ trocar lab run nowhere --engine onnxruntime
trocar: 'nowhere' is no lab: it has no manifest
  hint: `trocar split MODEL FOLDER` makes one
[exit 3]
$ trocar lab run
trocar: lab run needs LAB: Folder that `trocar split` made
  hint: `trocar lab run --help` lists the options
[exit 2]
$ trocar lab
trocar: lab needs a command
  hint: `trocar lab --help` lists them
[exit 2]

# A layer that no engine can run leaves a reason, and the rest goes on.

$ trocar split models/custom_domain.onnx custom --fill random --width 120
Layers
#  Type   Layer   Inputs    Outputs   Params  Attributes                            Error
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
0  Relu   before  f32[1,4]  f32[1,4]       0                                        –¹
1  Twist  twist   –²        –²             0  knots=[1.5,2.5] no…=i32[2,3] turns=3  failed: ONNX Runtime could not
                                                                                    compile the program: Fatal error:
                                                                                    com.example:Twist(-1) is not a
                                                                                    registered function/op
2  Abs    after   –²        –²             0                                        its input 'b' has no value, as an
                                                                                    earlier layer failed
¹ it was written
² the layer was not written

Split
  Folder               custom
  Layers written       1  of 3
  Layers without data  2  error.txt in their folders says why
  Samples              1
  Golden outputs from  onnxruntime ...

input 'x': f32 1x4, random in [0, 1)
input 'x': 'n' taken as 1
$ cat custom/layers/*/error.txt
failed: ONNX Runtime could not compile the program: Fatal error: com.example:Twist(-1) is not a registered function/op
its input 'b' has no value, as an earlier layer failed
$ trocar lab run custom --engine onnxruntime --width 120
Layers that did not run
#  Layer  End     Why
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
1  twist  failed  there is no layer to run: failed: ONNX Runtime could not compile the program: Fatal error:
                  com.example:Twist(-1) is not a registered function/op
2  after  failed  there is no layer to run: its input 'b' has no value, as an earlier layer failed

Run
  Results         onnxruntime  their name in the lab
  Layers done     1
  Layers failed   2
  Time in layers  ...

`trocar compare custom` compares them with the golden outputs
[exit 1]
$ trocar compare custom --width 120
Layers
                                       ×             Rel
#  Type   Layer  Verdict       tolerance  Max abs  error  Arriving  SQNR dB  ULP  Off  Worst at  Why
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
1  Twist  twist  INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹   –¹        –¹  failed: ONNX Runtime
                                                                                                 could not compile the
                                                                                                 program: Fatal error:
                                                                                                 com.example:Twist(-1)
                                                                                                 is not a registered
                                                                                                 function/op
2  Abs    after  INCOMPARABLE         –¹       –¹     –¹        –¹       –¹   –¹   –¹        –¹  its input 'b' has no
                                                                                                 value, as an earlier
                                                                                                 layer failed
¹ not compared
not shown: Ampl., Arriving verdict, Cosine, There, Here; --json or a wider terminal has all
1 of 3 layers are not shown

Comparison
  Reference         golden, onnxruntime ...
  Against it        onnxruntime  1 PASS, 0 WARN, 0 FAIL, 2 INCOMPARABLE
  First that fails  –¹
  Furthest off      layer 0 (Relu 'before')  0 times its tolerance
  Error at the end  –²  relative, after layer 2 (Abs 'after')
¹ none fails
² not compared
[exit 1]

# Layers that are alike are written once.

$ trocar split models/transformer.onnx unique --unique -q && python3 - <<'END'
> import json
> layers = json.load(open("unique/manifest.json"))["layers"]
> print(len(layers), sum(1 + len(layer.get("occurrences", [])) for layer in layers))
> END
37 96

# A result that is cut short is run again; what is broken is said.

$ trocar split models/if.onnx small -q && trocar lab run small --engine onnxruntime -q && trocar compare small -q
$ for f in small/layers/*/results/*/isolated/result.json; do echo '{' > $f; done; trocar compare small -q
[exit 1]
$ trocar lab run small --engine onnxruntime -q && trocar compare small -q
$ echo '{' > small/manifest.json; trocar compare small
trocar: 'small/manifest.json' is not what `trocar split` wrote: parse error at line 2, column 1: syntax error while parsing object key - unexpected end of input; expected string literal
[exit 3]

# What was saved must be a comparison.

$ echo '{}' > other.json; trocar compare other.json
trocar: 'other.json': this is no saved comparison of this version
[exit 3]
