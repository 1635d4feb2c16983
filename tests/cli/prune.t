# Elements, by layer and over all.

$ trocar prune models/transformer.onnx p.onnx --sparsity 0.5 --fill 1 --shape batch=1 --shape length=6 --at 'name:*layers.0*' --width 100
Weights
Layer                       Type    Elements  After  Not 0  After   Zeros     MACs    After     SQNR
────────────────────────────────────────────────────────────────────────────────────────────────────
/layers.0/att…query/MatMul  MatMul     4,096  4,096  4,096  2,048  50.0 %  24.58 k  24.58 k  12.2 dB
/layers.0/att…n/key/MatMul  MatMul     4,096  4,096  4,096  2,048  50.0 %  24.58 k  24.58 k   9.2 dB
/layers.0/att…value/MatMul  MatMul     4,096  4,096  4,096  2,048  50.0 %  24.58 k  24.58 k   9.0 dB
/layers.0/att…n/out/MatMul  MatMul     4,096  4,096  4,096  2,048  50.0 %  24.58 k  24.58 k   6.5 dB
/layers.0/linear1/MatMul    MatMul     8,192  8,192  8,192  4,096  50.0 %  49.15 k  49.15 k   8.5 dB
/layers.0/linear2/MatMul    MatMul     8,192  8,192  8,192  4,096  50.0 %  49.15 k  49.15 k   6.5 dB
not shown: Shape, Shape after; --json or a wider terminal has all

Pruned
  File               p.onnx
  Method             magnitude
  Asked for          50.0 %  of each layer
  Parameters before  77,440
  Parameters after   77,440  100.0 %
  Not 0 before       77,184
  Not 0 after        60,800  78.5 %
  MACs before        402.4 k
  MACs after         402.4 k
  MACs not with 0    304.1 k  what an engine that skips zeros computes

Quality
  Samples            1
  Same choice        0.0 %
  SQNR of hidden     6.9 dB

$ trocar prune models/transformer.onnx p.onnx --sparsity 0.8 --scope global -q

$ trocar prune models/transformer.onnx p.onnx --method random --seed 3 -q && trocar prune models/transformer.onnx again.onnx --method random --seed 3 -q && cmp p.onnx again.onnx

$ trocar prune models/transformer.onnx p.onnx --method 2:4 -q

# Channels.

$ trocar prune models/mobilenet_v2.onnx small.onnx --method channels --sparsity 0.5 --width 100 | tail -n 14
  File               small.onnx
  Method             channels
  Asked for          50.0 %  of each layer
  Channels before    10,128  coupled ones counted once
  Channels after     5,564
  Parameters before  3,504,872
  Parameters after   1,221,768  34.9 %
  Not 0 before       3,504,871
  Not 0 after        1,221,768  34.9 %
  MACs before        300.8 M
  MACs after         83.40 M
  MACs not with 0    83.40 M  what an engine that skips zeros computes

not compared with the model before: --data, --input or --fill would say on what

$ trocar run small.onnx --fill random --shape batch=1 -q

$ trocar prune models/resnet18.onnx small.onnx --method channels --keep 'module:layer4' -q

# Masks.

$ trocar prune models/transformer.onnx --masks m.npz -q && trocar prune models/transformer.onnx --masks m.safetensors -q

$ trocar run models/transformer.onnx --masks m.npz --fill 1 --shape batch=1 --shape length=6 --optimize none -o a -q

$ trocar dump models/transformer.onnx --masks m.safetensors --fill 1 --shape batch=1 --shape length=6 --tensors -o d -q

$ trocar prune models/transformer.onnx zeroed.onnx --apply m.npz -q

$ trocar run zeroed.onnx --fill 1 --shape batch=1 --shape length=6 --optimize none -o b -q && for f in a/*; do cmp $f b/$(basename $f); done

$ trocar dump zeroed.onnx --fill 1 --shape batch=1 --shape length=6 --tensors -o e -q && trocar diff d e -q

$ trocar prune models/resnet18.onnx no.onnx --apply m.npz
trocar: the model has no tensor 'layers.0.attention.query.weight' to mask
[exit 3]

$ trocar run models/transformer.onnx --masks m.npz --view deployed --fill 1
trocar: --masks are for the model's own constants: --view source
[exit 2]

# Sparse storage.

$ trocar prune models/transformer.onnx sparse.onnx --sparsity 0.9 --sparse-encoding -q && trocar run sparse.onnx --fill 1 --shape batch=1 --shape length=6 -q

# Nothing is written where something is wrong.

$ rm -f out.onnx; trocar prune models/transformer.onnx out.onnx --sparsity 1
trocar: 1 is no share to prune: it is 0 at least and below 1
[exit 2]

$ trocar prune models/transformer.onnx out.onnx --sparsity -1
trocar: -1 is no share to prune: it is 0 at least and below 1
[exit 2]

$ trocar prune models/transformer.onnx out.onnx --method half
trocar: 'half' is no way to prune
  hint: magnitude, random, channels, or a pattern such as 2:4
[exit 2]

$ trocar prune models/transformer.onnx out.onnx --method 2:4 --sparsity 0.5
trocar: --sparsity says nothing beside --method 2:4: the pattern itself says how many stay
[exit 2]

$ trocar prune models/transformer.onnx out.onnx --at Convolution
trocar: no op of the model matches --at type:Convolution
  hint: `trocar summary` lists its ops
[exit 2]

$ trocar prune models/transformer.onnx
trocar: there is nothing to write: neither OUT nor --masks is given
[exit 2]

$ trocar prune models/transformer.onnx out.onnx --multiple 8
trocar: --multiple is about --method channels
[exit 2]

$ trocar prune models/no_ops.onnx out.onnx
trocar: none of the chosen ops has weights
  hint: `trocar summary` shows which ops have parameters
[exit 3]

$ trocar prune models/quantized.onnx out.onnx
Left alone
Layer  Type  Why
───────────────────────────────────────────────────
conv   Conv  its weights are quantised: prune first

there is nothing to prune, so nothing was written
[exit 1]

$ ls out.onnx
ls: cannot access 'out.onnx': No such file or directory
[exit 2]
