# What is missing, with its name, type and the next step.

$ trocar run models/lstm.onnx
trocar: the inputs do not fit the model: input 'x' (f32[time,batch,8]) is not given; input 'h0' (f32[2,batch,16]) is not given; input 'c0' (f32[2,batch,16]) is not given
  hint: give it with --input x=FILE, or all that is missing with --fill random
[exit 3]

$ trocar run models/lstm.onnx --fill random
trocar: the inputs do not fit the model: input 'x' (f32[time,batch,8]): 'time', 'batch' must be given; input 'h0' (f32[2,batch,16]): 'batch' must be given; input 'c0' (f32[2,batch,16]): 'batch' must be given
  hint: sizes are given with --shape time=1 --shape batch=1
[exit 3]

$ trocar run models/resnet18.onnx --input inptu=random
trocar: the inputs do not fit the model: the model has no input 'inptu'; input 'input' (f32[batch,3,224,224]) is not given
  hint: did you mean 'input'? give it with --input input=FILE, or all that is missing with --fill random
[exit 3]

$ trocar run models/resnet18.onnx --input random --shape input=1,1,224,224
trocar: --shape gives input 'input' 1x1x224x224, but the model takes f32[batch,3,224,224]
[exit 3]

$ trocar run models/resnet18.onnx --input random --shape bacth=1
trocar: the inputs do not fit the model: --shape names 'bacth', which is neither an input nor a dimension; input 'input' (f32[batch,3,224,224]): 'batch' must be given
  hint: did you mean 'batch'? sizes are given with --shape batch=1
[exit 3]

$ trocar run models/resnet18.onnx --input nothing.npy
trocar: there is no file 'nothing.npy'
[exit 3]

$ trocar run models/resnet18.onnx --input 'random(1,0)'
trocar: 'random(1,0)' is not a range of numbers
  hint: write random(LOW,HIGH), as in random(-1,1)
[exit 2]

$ trocar run models/resnet18.onnx --fill noise
trocar: 'noise' is no way to fill inputs
  hint: write random, random(LOW,HIGH), zeros, ones or a number
[exit 2]

$ echo 12345 > x.bin

$ trocar run models/resnet18.onnx --input x.bin:f32:1x3x224x224
trocar: input 'input': 'x.bin' has 6 bytes, but f32 1x3x224x224 takes 602112
[exit 3]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --cut NoSuchOp
trocar: no op of the model matches --cut type:NoSuchOp
  hint: `trocar summary` lists its ops
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --repeat -1
trocar: --repeat and --warmup take a number of runs, 0 or more
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=1 --output x.bin
trocar: --output x.bin is not a folder
[exit 2]

$ trocar run models/resnet18.onnx --fill random --shape batch=100000000000
trocar: input 'input' as f32 100000000000x3x224x224 would take 60211200000000000 bytes, more than this machine's memory
[exit 3]

# Files that are no model.

$ trocar run nothing.onnx
trocar: there is no file 'nothing.onnx'
[exit 3]

$ trocar run x.bin
trocar: 'x.bin' is not a model format this build can read
  hint: known formats: ...onnx...; force one with --format
[exit 3]

$ touch empty.onnx

$ trocar run empty.onnx
trocar: 'empty.onnx' is empty
[exit 3]

$ mkdir folder

$ trocar run folder
trocar: 'folder' is a folder, not a file
[exit 3]
