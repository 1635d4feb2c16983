# The part between tensors; types that the file does not declare come from a run.

$ trocar extract models/resnet18.onnx part.onnx --from /maxpool/MaxPool_output_0 --to /layer1/layer1.0/Add_output_0
Part
  File  part.onnx
  Size  292 KiB
  Ops   6  of 69

Inputs
Name                       Type
──────────────────────────────────────────
/maxpool/MaxPool_output_0  f32[?,64,56,56]

Outputs
Name                           Type
──────────────────────────────────────────────
/layer1/layer1.0/Add_output_0  f32[?,64,56,56]

types that the file does not declare, as seen in runs: '/maxpool/MaxPool_output_0' f32[?,64,56,56],
'/layer1/layer1.0/Add_output_0' f32[?,64,56,56]

$ trocar run part.onnx --fill random --shape 1,64,56,56 -o out -q

# Without --from: from the model's inputs; several tensors with commas between them.

$ trocar extract models/resnet18.onnx head.onnx --to /relu/Relu_output_0,/conv1/Conv_output_0
Part
  File  head.onnx
  Size  38.5 KiB
  Ops   3  of 69

Inputs
Name   Type
───────────────────────────
input  f32[batch,3,224,224]

Outputs
Name                  Type
───────────────────────────────────────
/relu/Relu_output_0   f32[?,64,112,112]
/conv1/Conv_output_0  f32[?,64,112,112]

types that the file does not declare, as seen in runs: '/relu/Relu_output_0' f32[?,64,112,112],
'/conv1/Conv_output_0' f32[?,64,112,112]

$ trocar run head.onnx --fill zeros --shape batch=1 -q

# Constants in further files go into one file of the part.

$ trocar extract models/external.onnx tail.onnx --to y -q

$ ls tail*
tail.onnx
tail.onnx.data

# What does not go.

$ trocar extract models/resnet18.onnx part.onnx
trocar: nothing says which part to extract
  hint: give tensors with --from, --to, or both
[exit 2]

$ trocar extract models/resnet18.onnx part.onnx --to /relu/Relu_output_1
trocar: the model has no tensor '/relu/Relu_output_1'
  hint: did you mean '/relu/Relu_output_0'?
[exit 2]

$ trocar extract models/transformer.onnx part.onnx --from /Add_output_0 --to hidden
trocar: the part also needs 'attention_mask', which is not among the tensors to start from
  hint: name them too, or start at tensors that lie between
[exit 2]

$ trocar extract models/resnet18.onnx part.txt --to /relu/Relu_output_0
trocar: the suffix of 'part.txt' names no model format that can be written
  hint: known: ...onnx (.onnx .pb)...
[exit 2]
