# What `trocar summary` shows of the test models.

$ trocar summary models/resnet18.onnx
Model
  File              models/resnet18.onnx
  Size              44.6 MiB
  Format            onnx
  IR version        8
  Opsets            ai.onnx 17
  Producer          trocar tests/models
  Inputs            input: f32[batch,3,224,224] → 1x3x224x224
  Outputs           logits: f32[batch,1000] → 1x1000
  Ops               69
  Shapes            from a run on onnxruntime ...

Layer            ×   Type                Attributes  Output            Params     MACs        %
───────────────────────────────────────────────────────────────────────────────────────────────
conv1                Conv                k7×7 s2 p3  1x64x112x112       9,408  118.0 M    6.5 %
bn1                  BatchNormalization              1x64x112x112         128        –        –
relu                 Relu                            1x64x112x112           –        –        –
maxpool              MaxPool             k3×3 s2 p1  1x64x56x56             –        –        –
layer1                                               1x64x56x56       147,968  462.4 M   25.5 %
└─ layer1.[0-1]  ×2  14 ops                          1x64x56x56       147,968  462.4 M   25.5 %
layer2                                               1x128x28x28      525,568  411.0 M   22.7 %
├─ layer2.0          9 ops                           1x128x28x28      230,144  179.8 M    9.9 %
└─ layer2.1          7 ops                           1x128x28x28      295,424  231.2 M   12.7 %
layer3                                               1x256x14x14    2,099,712  411.0 M   22.7 %
├─ layer3.0          9 ops                           1x256x14x14      919,040  179.8 M    9.9 %
└─ layer3.1          7 ops                           1x256x14x14    1,180,672  231.2 M   12.7 %
layer4                                               1x512x7x7      8,393,728  411.0 M   22.7 %
├─ layer4.0          9 ops                           1x512x7x7      3,673,088  179.8 M    9.9 %
└─ layer4.1          7 ops                           1x512x7x7      4,720,640  231.2 M   12.7 %
avgpool              GlobalAveragePool               1x512x1x1              –        –        –
Flatten              Flatten             axis=1      1x512                  –        –        –
fc                   Gemm                transB=1    1x1000           513,000  512.0 k   <0.1 %
───────────────────────────────────────────────────────────────────────────────────────────────
total                69 ops                                        11,689,512  1.814 G  100.0 %
not shown: Inputs, %, Param bytes, FLOPs, Read, Written, FLOP/B; --json or a wider terminal has all

By op type
Type                Ops      Params       %           MACs        %    FLOPs      Read   Written
────────────────────────────────────────────────────────────────────────────────────────────────
Conv                 20  11,166,912  95.5 %  1,813,561,344  >99.9 %  3.627 G  50.9 MiB  9.47 MiB
Gemm                  1     513,000   4.4 %        512,000   <0.1 %  1.025 M  1.96 MiB  3.91 KiB
BatchNormalization   20       9,600   0.1 %              –        –  4.991 M  9.55 MiB  9.47 MiB
Relu                 17           –       –              –        –  2.308 M  8.80 MiB  8.80 MiB
MaxPool               1           –       –              –        –  1.606 M  3.06 MiB   784 KiB
Add                   8           –       –              –        –  752.6 k  5.74 MiB  2.87 MiB
GlobalAveragePool     1           –       –              –        –  25.09 k  98.0 KiB  2.00 KiB
Flatten               1           –       –              –        –        –  2.00 KiB  2.00 KiB

Parameters
  Parameters        11,689,512  what the layers have
  Stored            11,689,512  in 62 tensors
  Stored bytes      44.6 MiB
  By dtype          f32 11,689,512 (44.6 MiB)
  Buffers           9,600  not trained: running means, initial states
  Buffer bytes      37.5 KiB
  Other constants   0  0 B: shapes, indices, scales
  Zeros             <0.1 %
  Zero count        1

Compute
  MACs              1,814,073,344  f32 100 %
  FLOPs             3,637,830,568  2 × MACs + 9,683,880 other
  Other FLOPs       9,683,880
  Bytes read        80.1 MiB
  Bytes written     31.4 MiB
  Intensity         31.105  FLOP per byte, op by op
  Coverage          100.0 %  68 counted, 1 without arithmetic, 0 not counted
  Convention        1 MAC is one multiply-accumulate of a convolution, matrix product, recurrent
                    layer or attention (biases are not MACs, padding counts as data). FLOPs are 2 ×
                    MACs plus the other arithmetic, one per elementary operation and element,
                    whatever the dtype

Memory
  Peak activations  6.12 MiB
  Peak at           op 1 (BatchNormalization '/bn1/BatchNormalization')
  All activations   32.0 MiB
  Inference         50.8 MiB  constants and peak activations, nothing in place
  Training          210 MiB
                    parameters × 4 (value, gradient, two states of Adam), all activations kept

input 'input': 'batch' taken as 1

$ trocar summary models/resnet50.onnx --depth 1 --no-run | sed -n '/^Layer/,/^total/p'
Layer    Type                Attributes  Output               Params        %     bytes  MACs  %
────────────────────────────────────────────────────────────────────────────────────────────────
conv1    Conv                k7×7 s2 p3  unknown               9,408   <0.1 %  36.8 KiB    –¹  –
bn1      BatchNormalization              unknown                 128   <0.1 %   512 B      –²  –
relu     Relu                            unknown                   –        –         –    –¹  –
maxpool  MaxPool             k3×3 s2 p1  unknown                   –        –         –    –¹  –
layer1   32 ops                          unknown             215,808    0.8 %   843 KiB    –³  –
layer2   42 ops                          unknown           1,219,584    4.8 %  4.65 MiB    –³  –
layer3   62 ops                          unknown           7,098,368   27.8 %  27.1 MiB    –³  –
layer4   32 ops                          unknown          14,964,736   58.6 %  57.1 MiB    –³  –
avgpool  GlobalAveragePool               unknown                   –        –         –    –²  –
Flatten  Flatten             axis=1      unknown                   –        –         –     –  –
fc       Gemm                transB=1    f32[batch,1000]   2,049,000    8.0 %  7.82 MiB    –²  –
────────────────────────────────────────────────────────────────────────────────────────────────
total    175 ops                                          25,557,032  100.0 %  97.5 MiB    –³  –

$ for m in resnet18 resnet50 resnet50_shared mobilenet_v2; do trocar summary models/$m.onnx --json | python3 -c "
> import json, sys
> s = json.load(sys.stdin)['sections']
> print(s['parameters']['parameters'], s['parameters']['parameters_stored'], s['compute']['macs'], s['compute']['coverage'])"; done
11689512 11689512 1814073344 1.0
25557032 25557032 4089184256 1.0
25557032 25511976 4089184256 1.0
3504872 3504872 300774272 1.0

$ trocar summary models/resnet50.onnx --sort macs --top 3 | sed -n '/^Layer/,/^total/p'
Layer                        Type     Attributes  Output            Params     MACs        %
────────────────────────────────────────────────────────────────────────────────────────────
/conv1/Conv                  Conv     k7×7 s2 p3  1x64x112x112       9,408  118.0 M    2.9 %
/layer1/layer1.0/conv2/Conv  Conv     k3×3 p1     1x64x56x56        36,864  115.6 M    2.8 %
/layer1/layer1.1/conv2/Conv  Conv     k3×3 p1     1x64x56x56        36,864  115.6 M    2.8 %
────────────────────────────────────────────────────────────────────────────────────────────
total                        175 ops                            25,557,032  4.089 G  100.0 %

$ trocar summary models/resnet18.onnx --select 'Conv & module:layer4*' | sed -n '/^Layer/,/^total/p'
Layer                           Type    Attributes  Output         Params        %     MACs        %
────────────────────────────────────────────────────────────────────────────────────────────────────
/layer4/layer4.0/conv1/Conv     Conv    k3×3 s2 p1  1x512x7x7   1,179,648   10.1 %  57.80 M    3.2 %
/layer4/layer4.0/conv2/Conv     Conv    k3×3 p1     1x512x7x7   2,359,296   20.2 %  115.6 M    6.4 %
/layer4/layer4.…nsample.0/Conv  Conv    k1×1 s2     1x512x7x7     131,072    1.1 %  6.423 M    0.4 %
/layer4/layer4.1/conv1/Conv     Conv    k3×3 p1     1x512x7x7   2,359,296   20.2 %  115.6 M    6.4 %
/layer4/layer4.1/conv2/Conv     Conv    k3×3 p1     1x512x7x7   2,359,296   20.2 %  115.6 M    6.4 %
────────────────────────────────────────────────────────────────────────────────────────────────────
selected                        5 ops                           8,388,608   71.8 %  411.0 M   22.7 %
total                           69 ops                         11,689,512  100.0 %  1.814 G  100.0 %

$ trocar summary models/resnet18.onnx models/resnet50.onnx --configs --sort macs --top 5
Layer configurations
                                                                             MACs
Count  Models  Type  Attributes  Inputs       Weights       Output           each     MACs       %
──────────────────────────────────────────────────────────────────────────────────────────────────
    8       2  Conv  k3×3 p1     1x256x14x14  256x256x3x3   1x256x14x14   115.6 M  924.8 M  15.7 %
    7       2  Conv  k3×3 p1     1x64x56x56   64x64x3x3     1x64x56x56    115.6 M  809.2 M  13.7 %
    6       2  Conv  k3×3 p1     1x128x28x28  128x128x3x3   1x128x28x28   115.6 M  693.6 M  11.8 %
    5       2  Conv  k3×3 p1     1x512x7x7    512x512x3x3   1x512x7x7     115.6 M  578.0 M   9.8 %
    6       1  Conv  k1×1        1x256x14x14  1024x256x1x1  1x1024x14x14  51.38 M  308.3 M   5.2 %
not shown: FLOPs each, Read each, Written each, Params; --json or a wider terminal has all
68 distinct configurations of 244 ops in 2 models; the first 5 are shown

models/resnet18.onnx: input 'input': 'batch' taken as 1
models/resnet50.onnx: input 'input': 'batch' taken as 1
1 MAC is one multiply-accumulate of a convolution, matrix product, recurrent layer or attention
(biases are not MACs, padding counts as data). FLOPs are 2 × MACs plus the other arithmetic, one per
elementary operation and element, whatever the dtype

$ trocar summary models/quantized.onnx | sed -n '/^Layer/,/^total/p'
Layer         Type              Attributes  Output      Params        %  bytes     MACs        %
────────────────────────────────────────────────────────────────────────────────────────────────
quantize_x    QuantizeLinear                u8 1x3x8x8       –        –      –        –        –
dequantize_x  DequantizeLinear              1x3x8x8          –        –      –        –        –
dequantize_w  DequantizeLinear  axis=0      4x3x3x3          –        –      –        –        –
conv          Conv              k3×3 p1     1x4x8x8        108  100.0 %  108 B  6.912 k  100.0 %
────────────────────────────────────────────────────────────────────────────────────────────────
total         4 ops                                        108  100.0 %  108 B  6.912 k  100.0 %

$ trocar summary models/sparse.onnx | sed -n '/^Layer/,/^total/p'
Layer   Type    Inputs  Output  Params        %  bytes   Zeros  Pattern  MACs        %  FLOPs   Read
────────────────────────────────────────────────────────────────────────────────────────────────────
first   MatMul  1x8     1x6         48   50.0 %  204 B  64.6 %  COO        48   50.0 %     96  236 B
second  MatMul  1x6     1x8         48   50.0 %  340 B  64.6 %  COO        48   50.0 %     96  364 B
────────────────────────────────────────────────────────────────────────────────────────────────────
total   2 ops                       96  100.0 %  544 B  64.6 %  –          96  100.0 %    192  600 B

$ trocar summary models/if.onnx | sed -n '/^Layer/,/^total/p'
Layer        Type   Inputs       Output  Params        %  bytes  MACs  %  FLOPs  Read  Written
──────────────────────────────────────────────────────────────────────────────────────────────
choose       If     bool scalar  1            2  100.0 %    8 B     –  –      2  12 B      8 B
├─ else_neg  Neg    1            1            –        –      –     –  –      1   4 B      4 B
├─ else_mul  Mul    1            1            1   50.0 %    4 B     –  –      1   8 B      4 B
└─ then_add  Add    1            f32[n]       1   50.0 %    4 B    –¹  –     –¹    –¹       –¹
after        Relu   1            1            –        –      –     –  –      1   4 B      4 B
──────────────────────────────────────────────────────────────────────────────────────────────
total        5 ops                            2  100.0 %    8 B     –  –      3  16 B     12 B

$ trocar summary models/loop.onnx --shape n=3 | sed -n '/^Layer/,/^total/p'
Layer    Type       Attributes  Inputs         Output       MACs  %  FLOPs  Read  Written  FLOP/B
─────────────────────────────────────────────────────────────────────────────────────────────────
zero     Sub                    3, 3           3               –  –      3  24 B     12 B   0.083
loop     Loop                   i64 scalar, 3  3, 1x3          –  –      7  56 B     29 B   0.082
├─ add   Add                    3, 3           3               –  –      3  24 B     12 B   0.083
├─ size  ReduceSum  keepdims=0  3              scalar          –  –      3  12 B      4 B   0.188
├─ test  Less                   scalar         bool scalar     –  –      1   8 B      1 B   0.111
└─ each  Identity               3              3               –  –      –  12 B     12 B       –
─────────────────────────────────────────────────────────────────────────────────────────────────
total    6 ops                                                 –  –     10  80 B     41 B   0.083

$ trocar summary models/functions.onnx | sed -n '/^Layer/,/^total/p'
Layer        Type                Attributes        Inputs          Output  MACs  %  FLOPs  Read
───────────────────────────────────────────────────────────────────────────────────────────────
first        trocar.test:Twice   slope=0.1         1               1          –  –      3  12 B
├─ soften    trocar.test:Soften  slope=0.1         1               1          –  –      2   4 B
│  └─ leaky  LeakyRelu           alpha=0.1         1               1          –  –      2   4 B
└─ mul       Mul                                   1               1          –  –      1   8 B
second       trocar.test:Twice   gain=3 slope=0.2  1               1          –  –      3  12 B
├─ soften    trocar.test:Soften  slope=0.2         1               1          –  –      2   4 B
│  └─ leaky  LeakyRelu           alpha=0.2         1               1          –  –      2   4 B
└─ mul       Mul                                   1               1          –  –      1   8 B
third        trocar.test:Pick                      bool scalar, 1  1          –  –      1   4 B
└─ if        If                                    bool scalar     1          –  –      1   4 B
   ├─ abs    Abs                                   1               1          –  –      1   4 B
   └─ neg    Neg                                   1               f32       –¹  –     –¹    –¹
───────────────────────────────────────────────────────────────────────────────────────────────
total        12 ops                                                           –  –      7  28 B

$ trocar summary models/zero_sizes.onnx | sed -n '/^Layer/,/^total/p'
Layer   Type       Attributes  Inputs  Output  MACs  %  FLOPs  Read  Written  FLOP/B
────────────────────────────────────────────────────────────────────────────────────
concat  Concat     axis=0      0x4     0x4        –  –      –   0 B      0 B       –
sum     ReduceSum  keepdims=0  0x4     scalar     –  –      –   0 B      4 B       –
────────────────────────────────────────────────────────────────────────────────────
total   2 ops                                     –  –      –   0 B      4 B       –
