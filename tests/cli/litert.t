# Models of TensorFlow Lite run on LiteRT without its being named.

$ trocar run .deps/models/face_short.tflite --fill random --output whole -q

$ trocar run .deps/models/face_short.tflite --fill random --output cut --cut all -q

$ cmp whole/regressors.npy cut/regressors.npy

$ trocar run .deps/models/face_short.tflite --fill random --engine litert,kernels=fast
trocar: engine option kernels=fast is unknown
  hint: kernels takes delegate, builtin or reference
[exit 2]

$ trocar run .deps/models/face_short.tflite --fill random --engine onnxruntime
Inputs
...
Outputs
...
regressors ... 1x896x16 ...
...

$ trocar run .deps/models/nmp.tflite --fill random
trocar: input 'serving_default_input_2:0' (f32[?,43844,1]): dimension 0 must be given
  hint: sizes are given with --shape serving_default_input_2:0=1,43844,1
[exit 3]

$ trocar dump .deps/models/iris_landmark.tflite --fill random --output iris.dump -q

$ trocar profile .deps/models/face_short.tflite --view source --fill random --runs 2 -q
...

# Parts are models; a model that was not edited is written as it was.

$ trocar extract .deps/models/face_short.tflite part.tflite --to activation_3 -q

$ trocar run part.tflite --fill random -q

$ trocar convert .deps/models/face_full_sparse.tflite same.tflite -q

$ cmp same.tflite .deps/models/face_full_sparse.tflite

# Layers as models of their own.

$ trocar split .deps/models/iris_landmark.tflite lab --fill random --select CONV_2D --unique -q

$ ls lab/layers/0000_CONV_2D_conv2d
bin
manifest.json
model.tflite
npy
test_data_set_0
