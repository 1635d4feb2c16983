# What `trocar summary` shows of the test models.

$ trocar summary models/resnet18.onnx

$ trocar summary models/resnet50.onnx --depth 1 --no-run | sed -n '/^Layer/,/^total/p'

$ for m in resnet18 resnet50 resnet50_shared mobilenet_v2; do trocar summary models/$m.onnx --json | python3 -c "
> import json, sys
> s = json.load(sys.stdin)['sections']
> print(s['parameters']['parameters'], s['parameters']['parameters_stored'], s['compute']['macs'], s['compute']['coverage'])"; done

$ trocar summary models/resnet50.onnx --sort macs --top 3 | sed -n '/^Layer/,/^total/p'

$ trocar summary models/resnet18.onnx --select 'Conv & module:layer4*' | sed -n '/^Layer/,/^total/p'

$ trocar summary models/resnet18.onnx models/resnet50.onnx --configs --sort macs --top 5

$ trocar summary models/quantized.onnx | sed -n '/^Layer/,/^total/p'

$ trocar summary models/sparse.onnx | sed -n '/^Layer/,/^total/p'

$ trocar summary models/if.onnx | sed -n '/^Layer/,/^total/p'

$ trocar summary models/loop.onnx --shape n=3 | sed -n '/^Layer/,/^total/p'

$ trocar summary models/functions.onnx | sed -n '/^Layer/,/^total/p'

$ trocar summary models/zero_sizes.onnx | sed -n '/^Layer/,/^total/p'
