# Random inputs, whole and cut at every op: the same numbers up to rounding.

$ trocar run models/lstm.onnx --fill random --shape time=4 --shape batch=2 --output whole
Inputs
Name  Type        From
──────────────────────────────────
x     f32 4x2x8   random in [0, 1)
h0    f32 2x2x16  random in [0, 1)
c0    f32 2x2x16  random in [0, 1)

Outputs
Name  Type  Shape ... NaN  Inf   Size  File
───...
h1    f32   2x2x16 ... 0    0  256 B  whole/h1.npy
h2    f32   1x2x16 ... 0    0  128 B  whole/h2.npy
c2    f32   1x2x16 ... 0    0  128 B  whole/c2.npy

Time
  Compile    ...
  First run  ...

Programs
  Cut        none
  Programs   1  of 4 ops
  Optimised ...
  Isolated   no

$ trocar run models/lstm.onnx --fill random --shape time=4 --shape batch=2 --output cut --cut all -q

$ python3 - <<'END'
> import struct
> floats = lambda path: struct.unpack("<32f", open(path, "rb").read()[-128:])
> for name in ("h1", "h2", "c2"):
>     pairs = zip(floats(f"whole/{name}.npy"), floats(f"cut/{name}.npy"))
>     print(name, all(abs(a - b) < 1e-5 for a, b in pairs))
> END
h1 True
h2 True
c2 True

# Several runs: the first one apart, median and spread of the others.

$ trocar run models/loop.onnx --fill ones --shape n=3 --repeat 3 --warmup 1
Inputs
Name   Type        From
───────────────────────
count  i64 scalar  ones
x      f32 3       ones

Outputs
Name   Type  Shape  Min  Max  Mean  NaN  Inf  Size
──────────────────────────────────────────────────
total  f32   3        1    1     1    0    0  12 B
steps  f32   1x3      1    1     1    0    0  12 B

Time
  Compile                 ...
  First run               ...
  Median                  ...  of 3 runs after the first and 1 to warm up
  Deviation               ...  median absolute deviation
  Fastest                 ...
  Slowest                 ...
  Runs                    3
  Warm-up runs            1
  Same bits in every run  yes

Programs
  Cut                     none
  Programs                1  of 2 ops
  Optimised ...
  Isolated                no

$ trocar run models/loop.onnx --fill ones --shape n=3 --repeat 3 --json | python3 -c 'import json, sys; r = json.load(sys.stdin); print(sorted(r["sections"]["time"]), r["sections"]["programs"]["programs"])'
['compile_ns', 'deviation_ns', 'deviation_ns_note', 'first_ns', 'max_ns', 'median_ns', 'median_ns_note', 'min_ns', 'runs', 'same_bits', 'warmup_runs'] 1

# The same seed gives the same inputs, another one others.

$ for seed in 1 1 2; do trocar run models/output_is_input.onnx --fill random --shape n=2 --seed $seed -o out -q; cksum < $(ls out/*.npy | head -n 1); done | uniq -c | awk '{print $1}'
2
1

# Arrays and raw elements.

$ python3 -c 'import struct; open("x.bin", "wb").write(struct.pack("<8f", *range(8)))'

$ trocar run models/no_ops.onnx --input x=x.bin:f32:2x4 --output raw
Inputs
Name  Type     From
────────────────────────────
x     f32 2x4  x.bin:f32:2x4

Outputs
Name  Type  Shape  Min  Max  Mean  NaN  Inf  Size  File
────────────────────────────────────────────────────────────
x     f32   2x4      0    7   3.5    0    0  32 B  raw/x.npy

Time
  Compile    ...
  First run  ...

Programs
  Cut        none
  Programs   0  of 0 ops
  Optimised ...
  Isolated   no

$ trocar run models/no_ops.onnx --input raw/x.npy
Inputs
Name  Type     From
────────────────────────
x     f32 2x4  raw/x.npy

Outputs
Name  Type  Shape  Min  Max  Mean  NaN  Inf  Size
─────────────────────────────────────────────────
x     f32   2x4      0    7   3.5    0    0  32 B

Time
  Compile    ...
  First run  ...

Programs
  Cut        none
  Programs   0  of 0 ops
  Optimised ...
  Isolated   no

$ trocar run models/no_ops.onnx --input x.bin --shape n=2 -q

# Numbers, and what .npy cannot hold.

$ trocar run models/strings.onnx --fill random --shape n=2 --output text
Inputs
Name  Type      From
──────────────────────────────
text  string 2  random letters

Outputs
Name   Type    Shape  Min  Max  Mean  NaN  Inf  Size  File
────────────────────────────────────────────────────────────────────
all    string  4       –¹   –¹    –¹   –¹   –¹    –²  text/all.pb
codes  i64     4       -1    7     1    0    0  32 B  text/codes.npy
¹ not numbers
² no fixed size

Time
  Compile    ...
  First run  ...

Programs
  Cut        none
  Programs   1  of 3 ops
  Optimised ...
  Isolated   no
