# Statistics of every op's output. In bodies of loops, the round stands behind the name.

$ trocar dump models/loop.onnx --fill 3 --shape n=2
Tensors
Op  Type       Tensor      Of    Shape   Min  Max  Mean      Std  p50    Zeros  NaN  Inf  Denormals
───────────────────────────────────────────────────────────────────────────────────────────────────
 0  Sub        zero        f32   2         0    0     0        0    0  100.0 %    0    0          0
 0  Add        sum_out @0  f32   2         3    3     3        0    3    0.0 %    0    0          0
 3  Identity   each @0     f32   2         3    3     3        0    3    0.0 %    0    0          0
 1  ReduceSum  size @0     f32   scalar    6    6     6        0    6    0.0 %    0    0          0
 2  Less       go_on @0    bool  scalar    1    1     1        0    1    0.0 %    0    0          0
 0  Add        sum_out @1  f32   2         6    6     6        0    6    0.0 %    0    0          0
 3  Identity   each @1     f32   2         6    6     6        0    6    0.0 %    0    0          0
 1  ReduceSum  size @1     f32   scalar   12   12    12        0   12    0.0 %    0    0          0
 2  Less       go_on @1    bool  scalar    1    1     1        0    1    0.0 %    0    0          0
 0  Add        sum_out @2  f32   2         9    9     9        0    9    0.0 %    0    0          0
 3  Identity   each @2     f32   2         9    9     9        0    9    0.0 %    0    0          0
 1  ReduceSum  size @2     f32   scalar   18   18    18        0   18    0.0 %    0    0          0
 2  Less       go_on @2    bool  scalar    1    1     1        0    1    0.0 %    0    0          0
 1  Loop       total       f32   2         9    9     9        0    9    0.0 %    0    0          0
 1  Loop       steps       f32   3x2       3    9     6  2.44949    6    0.0 %    0    0          0
not shown: RMS, p1, p99, Entropy; --json or a wider terminal has all

Dump
  Index      loop.dump/index.jsonl
  Tensors    15
  Written    0 B  statistics only; --tensors writes the tensors too
  Ended      complete
  Taps       6
  Cuts       0
  Constants  0  ops that only pass a constant on

# The index: one JSON object per line; the first says what was dumped, the last how it ended.

$ python3 - <<'END'
> import json
> lines = [json.loads(line) for line in open("loop.dump/index.jsonl")]
> print(lines[0]["schema"], lines[0]["about"]["engine"], lines[-1])
> total = next(line for line in lines if line.get("tensor") == "sum_out" and line["iterations"] == [2])
> print(total["type"], total["scope"], total["shape"], total["dtype"], total["statistics"]["max"])
> END
trocar.dump/1 onnxruntime {'end': 'complete', 'records': 15}
Add Loop 'loop' body [2] f32 9.0

# A folder that holds something is left alone.

$ trocar dump models/loop.onnx --fill 3 --shape n=2
trocar: the folder 'loop.dump' is not empty
  hint: remove it, or name another with --output
[exit 2]

# Tensors, as files that NumPy reads, and as archives.

$ trocar dump models/lstm.onnx --fill random --shape time=4 --shape batch=2 --tensors --at LSTM -o npy -q && ls npy npy/tensors
npy:
index.jsonl
tensors

npy/tensors:
c2.npy
h1.npy
h2.npy
y1.npy

$ trocar dump models/lstm.onnx --fill random --shape time=4 --shape batch=2 --tensors --at LSTM --as npz -o npz -q && ls npz
index.jsonl
tensors.npz

$ trocar dump models/lstm.onnx --fill random --shape time=4 --shape batch=2 --tensors --at LSTM --as safetensors -o safetensors -q && ls safetensors
index.jsonl
tensors.safetensors

$ python3 - <<'END'
> import json, struct
> data = open("safetensors/tensors.safetensors", "rb").read()
> length = struct.unpack("<Q", data[:8])[0]
> header = json.loads(data[8:8 + length])
> first, last = header["h1"]["data_offsets"]
> print(header["h1"]["dtype"], header["h1"]["shape"], data[8 + length + first:8 + length + last] == open("npy/tensors/h1.npy", "rb").read()[-256:])
> END
F32 [2, 2, 16] True

# What .npy cannot hold goes to ONNX's .pb files.

$ trocar dump models/sequence_ops.onnx --fill random --shape n=3 --tensors -o sequences -q && ls sequences/tensors
count.npy
more.pb
negated.npy
parts.pb
second.npy
y.npy

# Several sets of inputs, one dump.

$ trocar dump models/dynamic.onnx --input-set x=1 --input-set x=2 --shape n=2 --shape m=3 --at index:0 -o sets
Tensors
Set  Op  Type  Tensor  Of   Shape  Min  Max  Mean  Std  p1  p50  p99  Zeros  NaN  Inf  Denormals
────────────────────────────────────────────────────────────────────────────────────────────────
  0   0  Abs   a       f32  2x3      1    1     1    0   1    1    1  0.0 %    0    0          0
  1   0  Abs   a       f32  2x3      2    2     2    0   2    2    2  0.0 %    0    0          0
not shown: RMS, Entropy; --json or a wider terminal has all

Dump
  Index      sets/index.jsonl
  Tensors    2
  Written    0 B  statistics only; --tensors writes the tensors too
  Ended      complete
  Taps       1
  Cuts       0
  Constants  0  ops that only pass a constant on

# Who made the first infinity?

$ trocar dump models/if.onnx --input x=3e38 --input flag=0 --shape n=2 --first-bad -o bad
Tensors
Op  Type  Tensor    Of   Shape     Min     Max    Mean  Std     p50  Zeros  NaN  Inf  Denormals
───────────────────────────────────────────────────────────────────────────────────────────────
 0  Neg   neg       f32  2      -3e+38  -3e+38  -3e+38    0  -3e+38  0.0 %    0    0          0
 1  Mul   else_out  f32  2          –¹      –¹      –¹   –¹      –¹  0.0 %    0    2          0
¹ no finite numbers
not shown: RMS, p1, p99, Entropy; --json or a wider terminal has all

First NaN or infinity
  Found          yes
  Op             op 1 (Mul 'else_mul')  If 'choose' else_branch
  Tensor         else_out
  NaN            0  of 2
  Infinite       2
  Set of inputs  0
  Made here      yes  all that it read is finite

Dump
  Index          bad/index.jsonl
  Tensors        2
  Written        0 B  statistics only; --tensors writes the tensors too
  Ended          stopped
  Taps           5
  Cuts           0
  Constants      0  ops that only pass a constant on
[exit 1]

$ trocar dump models/if.onnx --fill 1 --shape n=2 --first-bad -o good -q

# Nobody matches.

$ trocar dump models/if.onnx --fill 1 --shape n=2 --at "Mull | name:relu*"
trocar: no op of the model matches --at Mull | name:relu*
  hint: did you mean 'Mul'? the model has Add, If, Mul, Neg, Relu
[exit 2]

$ trocar dump models/if.onnx --fill 1 --shape n=2 --at 'name:nothing' --allow-empty -o empty -q && tail -n 1 empty/index.jsonl
{"end":"complete","records":0}

# A full disk: what was written before stays readable.

$ (trap '' XFSZ; ulimit -f 300; trocar dump models/resnet18.onnx --fill random --shape batch=1 --tensors --as npz -o full -q)
trocar: the tool 'dump' failed at op 0 (Conv '/conv1/Conv'): cannot write 'full/tensors.npz': File too large
  hint: what was written before is whole and readable
[exit 3]

$ python3 - <<'END'
> import json, os
> lines = [json.loads(line) for line in open("full/index.jsonl")]
> size = os.path.getsize("full/tensors.npz")
> print(all(line["offset"] + line["bytes"] <= size for line in lines if "offset" in line), "end" in lines[-1])
> END
True False
