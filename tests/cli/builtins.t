# What is here. The engines depend on the machine; that each has a line does not.

$ trocar engines
Engine ...
───...
onnxruntime ...
...

$ trocar engines --json | python3 -c 'import json, sys; print([e["name"] for e in json.load(sys.stdin)["tables"]["engines"]][0])'
onnxruntime

$ trocar engines --json | python3 -c 'import json, sys; print([e["available"] for e in json.load(sys.stdin)["tables"]["engines"] if e["name"] == "reference"])'
[True]

# An engine that is not there, or is none, is a line with the reason, not a failure.

$ trocar engines --engine onnxruntime:/nowhere/libonnxruntime.so
Engine ...
───...
onnxruntime  missing  –
...
onnxruntime: there is no ONNX Runtime at '/nowhere/libonnxruntime.so'; pip install onnxruntime, or
--engine onnxruntime:PATH

$ echo "not a library" > libonnxruntime.so.1.31.1

$ trocar engines --width 0 --engine onnxruntime:libonnxruntime.so.1.31.1
Engine ...
───...
onnxruntime  unusable  1.31.1 ... .../libonnxruntime.so.1.31.1
...
onnxruntime: '.../libonnxruntime.so.1.31.1' is not a shared library; pip install onnxruntime, or --engine onnxruntime:PATH

$ trocar engines --engine openvino:/nowhere/libopenvino_c.so
Engine ...
───...
...
openvino ... missing  –
...
openvino: there is no OpenVINO at '/nowhere/libopenvino_c.so'; pip install openvino, or --engine
openvino:PATH

$ trocar engines --engine tensorflow
trocar: there is no engine named 'tensorflow'
  hint: known engines: executorch, litert, onnxruntime...
[exit 2]

$ trocar formats
Format ... Suffixes ... Models ... Tensors ... What it is
───...
...
numpy ... .npy .npz ... no ... read, write ... NumPy arrays and archives of them
onnx ... .onnx .pb ... read, write ... read, write ... ONNX models; ...
...
pt2 ... .pt2 ... read ... no ... Programs of torch.export
safetensors ... .safetensors ... no ... read, write ... safetensors: ...
...

$ trocar formats --json | python3 -m json.tool > /dev/null

$ trocar tools
Tool       What it does
───...
...
convert    Write a model in another format, or back with its external data where you want it
...
run        Run a model, whole or cut into programs, and keep its outputs
...

$ trocar tools --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["schema"])'
trocar.report/1

$ trocar --version
trocar ...

$ trocar version
trocar    ...
Build     ...
Compiler  ...

$ trocar version --json | python3 -m json.tool
{
    "schema": "trocar.report/1",
    "tool": "version",
    "trocar": "...",
    "build": "...",
    "context": {},
    "sections": {
        "version": {
            "version": "...",
            "build": "...",
            "compiler": "..."
        }
    },
    "tables": {},
    "notes": [],
    "warnings": [],
    "verdict": true,
    "partial": false
}

