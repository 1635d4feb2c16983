# Parts of nearly the same work.

$ trocar partition models/resnet18.onnx parts --parts 3 --width 100
Parts
Part  File          Ops     Cost   Share  Constants     Needs  Reads  Gives
───────────────────────────────────────────────────────────────────────────
   0  part_00.onnx   18  580.4 M  32.0 %    618 KiB  6.73 MiB      1      1
   1  part_01.onnx   25  590.9 M  32.6 %   5.52 MiB  7.05 MiB      1      1
   2  part_02.onnx   26  642.8 M  35.4 %   38.5 MiB  39.1 MiB      1      1

Tensors between parts
Tensor                                 Type                Bytes  From  To
──────────────────────────────────────────────────────────────────────────
/layer1/layer1.1/relu_1/Relu_output_0  f32[?,64,56,56]   784 KiB     0  1
/layer3/layer3.0/relu_1/Relu_output_0  f32[?,256,14,14]  196 KiB     1  2

Partition
  Folder                  parts
  Cut by                  3 parts of nearly equal cost (macs)
  Parts                   3
  Largest to mean         1.06×  cost by macs
  Tensors cut             2
  Bytes cut               980 KiB  each counted once
  Same bits as the whole  yes  onnxruntime ..., random inputs, seed 0

input 'input': 'batch' taken as 1

$ ls parts
manifest.json
part_00.onnx
part_01.onnx
part_02.onnx

$ trocar partition run parts --fill random --shape batch=1 --seed 5 -o by-parts -q && trocar run models/resnet18.onnx --fill random --shape batch=1 --seed 5 --optimize none -o whole -q && cmp by-parts/* whole/*

$ trocar partition run parts --fill random --shape batch=1
Parts
Part  Device  Engine              Ops     Time
──────────────────────────────────────────────
   0          onnxruntime ...   18  ...
   1          onnxruntime ...   25  ...
   2          onnxruntime ...   26  ...
one run of each, compiling left out

Outputs
Name    Type        File
────────────────────────
logits  f32 1x1000    –¹
¹ --output FOLDER writes it

# By device, by memory, privately.

$ trocar partition models/transformer.onnx devices --device npu='MatMul | Add' --device cpu=all --shape batch=1 --shape length=6 | tail -n 8
Partition
  Folder                  devices
  Cut by                  devices
  Parts                   33
  Largest to mean         6.05×  cost by macs
  Tensors cut             48
  Bytes cut               67.7 KiB  each counted once
  Same bits as the whole  yes  onnxruntime ..., random inputs, seed 0

$ printf '# device and ops\nnpu MatMul | Add\ncpu all\n' > labels.txt && trocar partition models/transformer.onnx lines --devices labels.txt -q && diff <(ls devices) <(ls lines)

$ trocar partition models/resnet18.onnx bytes --max-bytes 16MiB | tail -n 8
  Cut by                  at most 16MiB in each part
  Parts                   5
  Largest to mean         3.55×  cost by macs
  Tensors cut             6
  Bytes cut               882 KiB  each counted once
  Same bits as the whole  yes  onnxruntime ..., random inputs, seed 0

input 'input': 'batch' taken as 1

$ trocar partition models/resnet18.onnx private --private 'module:layer2' | tail -n 8
  Cut by                  private: module:layer2
  Parts                   3
  Largest to mean         1.36×  cost by macs
  Tensors cut             2
  Bytes cut               1.15 MiB  each counted once
  Same bits as the whole  yes  onnxruntime ..., random inputs, seed 0

input 'input': 'batch' taken as 1

$ trocar partition models/mobilenet_v2.onnx ops --parts 4 --cost ops -q

# All that control flow, sequences and odd outputs can be.

$ for m in if loop scan nested optional_inside output_is_input output_is_constant initializers_as_inputs functions shared_initializer constant_chain external; do trocar partition models/$m.onnx odd-$m --parts 1 -q || echo $m; done

$ for m in if loop nested functions external; do trocar partition models/$m.onnx two-$m --parts 2 -q || echo $m; done

# What is wrong is said, and nothing is left.

$ trocar partition models/resnet18.onnx none
trocar: nothing says where to cut
  hint: give one of --device, --parts, --max-bytes, --private
[exit 2]

$ trocar partition models/resnet18.onnx none --parts 2 --max-bytes 1M
trocar: several options say where to cut
  hint: give one of --device, --parts, --max-bytes, --private
[exit 2]

$ trocar partition models/resnet18.onnx none --parts 1000
trocar: 1000 parts cannot be made of 69 ops
[exit 2]

$ trocar partition models/resnet18.onnx none --max-bytes 1k
trocar: op 0 (Conv '/conv1/Conv') alone needs 3851008 bytes, more than the limit of 1024
[exit 3]

$ trocar partition models/resnet18.onnx none --device npu
trocar: --device names no device, or no ops for it
  hint: write --device NAME=SELECTOR, as in --device npu='Conv | Relu'
[exit 2]

$ trocar partition models/resnet18.onnx none --device npu=Convolution
trocar: no op of the model matches --device type:Convolution
  hint: `trocar summary` lists its ops
[exit 2]

$ trocar partition models/resnet18.onnx parts --parts 2
trocar: 'parts' has something in it
  hint: parts are written to a folder of their own: name a new one, or empty this one
[exit 2]

$ ls -A | grep -v -E '^(\.deps|bytes|by-parts|devices|labels.txt|lines|models|ops|parts|private|whole|odd-.*|two-.*|tools)$'
[exit 1]

$ echo x >> parts/part_02.onnx; trocar partition run parts --fill random --shape batch=1
trocar: 'parts/part_02.onnx' of part 2 was changed: its SHA-256 is ..., the manifest has ...
  hint: `trocar partition` with the model makes the parts again
[exit 3]

$ rm parts/part_01.onnx; trocar partition run parts --fill random --shape batch=1
trocar: part 1 is not complete: there is no 'parts/part_01.onnx'
  hint: `trocar partition` with the model makes the parts again
[exit 3]

$ sed -i 's/part_00.onnx/..\/part_00.onnx/' parts/manifest.json; trocar partition run parts --fill random --shape batch=1
trocar: a manifest in 'parts' names the file '../part_00.onnx', which is outside of it
[exit 3]

$ echo '{' > parts/manifest.json; trocar partition run parts --fill random --shape batch=1
trocar: 'parts/manifest.json': it is no JSON object
[exit 3]

$ trocar partition run whole
trocar: 'whole' has no parts of a model: it has no manifest.json
  hint: `trocar partition MODEL FOLDER` writes it
[exit 3]

$ trocar partition run nowhere
trocar: there is no folder 'nowhere'
[exit 3]

# A format that is read only.

$ trocar partition .deps/models/silero_vad.jit read-only --parts 2
trocar: parts of models of the format 'torchscript' cannot be written
  hint: `trocar convert` maps it to onnx, whose parts can be
[exit 3]
