# Weights alone, of products and tables.

$ trocar quantize models/transformer.onnx w.onnx --scheme weights-int8
Quantized
  File                   w.onnx
  Scheme                 weights-int8
  Ops                    13  of 13 that could be
  Normalisations folded  0
  Constants before       303 KiB
  Constants after        ... KiB

not compared with the model before: --data, --input or --fill would say on what

$ trocar run w.onnx --fill 1 --shape batch=1 --shape length=6 -q

$ trocar quantize models/transformer.onnx w.onnx --scheme weights-int4 -q && trocar run w.onnx --fill 1 --shape batch=1 --shape length=6 -q

$ trocar quantize models/lstm.onnx w.onnx --scheme weights-int8 -q

# What is quantised already stays.

$ trocar quantize models/quantized.onnx out.onnx --fill random --shape n=1
Not quantized
Op    Type  Why
───────────────────────────────────
conv  Conv  it is quantised already

there is nothing to quantize, so nothing was written
[exit 1]

# Nothing is written where something is wrong.

$ trocar quantize models/transformer.onnx out.onnx
trocar: calibration needs inputs: --data, --input or --fill
  hint: --data FOLDER takes pictures, arrays or data sets; --fill random is for trying things out
[exit 2]

$ trocar quantize models/transformer.onnx out.onnx --scheme int3
trocar: 'int3' is no scheme of quantisation
  hint: one of int8, weights-int8, weights-int4, weights-f16, weights-bf16
[exit 2]

$ trocar quantize models/transformer.onnx out.onnx --scheme weights-int8 --keep Convolution
trocar: no op of the model matches --keep type:Convolution
  hint: `trocar summary` lists its ops
[exit 2]

$ trocar quantize models/transformer.onnx out.onnx --scheme weights-int8 --keep all | tail -n 1
there is nothing to quantize, so nothing was written

$ trocar quantize models/no_ops.onnx out.onnx --scheme weights-f16
no op outside of bodies has weights or sums of f32, so nothing was written
[exit 1]

$ trocar quantize models/transformer.onnx out.onnx --fill nan --shape batch=1 --shape length=6 --range entropy --percentile 0
trocar: --percentile is a number above 0, and 100 at most
[exit 2]

$ ls out.onnx
ls: cannot access 'out.onnx': No such file or directory
[exit 2]
