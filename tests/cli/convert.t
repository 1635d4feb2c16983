# A model that was not edited is written back as the same bytes.

$ trocar convert models/lstm.onnx copy.onnx
Written
  File                      copy.onnx
  Size                      25.7 KiB
  In further files          0 B
  Same bytes as the source  yes

$ cmp models/lstm.onnx copy.onnx

# Into a folder: under the same name, external data beside it.

$ mkdir folder

$ trocar convert models/external.onnx folder
Written
  File                      folder/external.onnx
  Size                      431 B
  In further files          8.50 KiB
  Same bytes as the source  yes

$ ls folder
external.bin
external.onnx

$ trocar convert models/external.onnx one.onnx --external-data inline
Written
  File                      one.onnx
  Size                      2.89 KiB
  In further files          0 B
  Same bytes as the source  no

$ trocar convert models/external.onnx apart.onnx --external-data separate -q

$ ls apart*
apart.onnx
apart.onnx.data

$ trocar convert models/external.onnx reference.onnx --external-data reference
Written
  File                      reference.onnx
  Size                      431 B
  Same bytes as the source  yes

# Over itself.

$ trocar convert copy.onnx copy.onnx --verify
Written
  File                      copy.onnx
  Size                      25.7 KiB
  In further files          0 B
  Same bytes as the source  yes  written over the source

$ cmp models/lstm.onnx copy.onnx

$ trocar convert models/lstm.onnx nowhere/
trocar: there is no folder 'nowhere/'
[exit 2]

$ trocar convert models/lstm.onnx out.model
trocar: the suffix of 'out.model' names no model format that can be written
  hint: known: executorch (.pte), onnx (.onnx .pb), tflite (.tflite)
[exit 2]

$ trocar convert models/lstm.onnx out.tflite
trocar: the inputs do not fit the model: ... must be given...
  hint: sizes are given with --shape time=1 --shape batch=1
[exit 3]

$ trocar convert models/lstm.onnx nowhere/out.onnx
trocar: cannot create 'nowhere/out.onnx': No such file or directory
[exit 3]

$ trocar convert models/lstm.onnx out.onnx --external-data elsewhere
trocar: --external-data cannot be 'elsewhere'
  hint: one of: copy, reference, inline, separate
[exit 2]

$ trocar convert models/lstm.onnx out.onnx --format caffe
trocar: no format named 'caffe'
  hint: known formats: ...onnx...
[exit 2]

# The constants alone, and constants put in.

$ trocar convert models/lstm.onnx weights.safetensors
Written
  File       weights.safetensors
  Size       ...
  Constants  ... of ...

$ trocar convert models/lstm.onnx again.onnx --weights weights.safetensors -q

$ trocar diff models/lstm.onnx again.onnx -q

$ trocar convert models/lstm.onnx weights.npz -q

$ trocar convert models/external.onnx other.onnx --weights weights.npz
trocar: the model has no constant '...'
...
[exit 3]

$ trocar summary weights.npz
trocar: 'weights.npz' is a file of tensors (numpy), not a model
  hint: `trocar convert MODEL OUT --weights FILE` puts tensors into a model
[exit 3]

$ ls
again.onnx
apart.onnx
apart.onnx.data
copy.onnx
folder
models
one.onnx
reference.onnx
weights.npz
weights.safetensors
