# What `trocar summary` does when it cannot do everything.

$ trocar summary

$ trocar summary models/resnet18.onnx models/resnet50.onnx

$ trocar summary models/none.onnx

$ trocar summary models/resnet18.onnx --sort size

$ trocar summary models/resnet18.onnx --depth -1

$ trocar summary models/resnet18.onnx --select 'module:'

$ trocar summary models/custom_domain.onnx | sed -n '/^Not counted/,/^Parameters/p'

$ trocar summary models/no_shapes.onnx | sed -n '/^Layer/,/^total/p'

$ trocar summary models/no_shapes.onnx --shape x=2,3 | sed -n '/^Layer/,/^total/p'

$ trocar summary models/resnet18.onnx --engine onnxruntime:/nowhere | sed -n '/Shapes/p'

$ trocar summary models/resnet18.onnx --no-run --no-weights --json | python3 -c "
> import json, sys
> s = json.load(sys.stdin)['sections']
> print(s['parameters']['parameters'], s['parameters']['zero_ratio'], s['parameters']['zero_ratio_reason'])"
