# What is here. The engines depend on the machine; that each has a line does not.

$ trocar engines
Engine ...
───...
onnxruntime ...
...

$ trocar engines --json | python3 -c 'import json, sys; print([e["name"] for e in json.load(sys.stdin)["tables"]["engines"]][0])'
onnxruntime

# An engine that is not there, or is none, is a line with the reason, not a failure.

$ trocar engines --engine onnxruntime:/nowhere/libonnxruntime.so

$ echo "not a library" > libonnxruntime.so.1.31.1

$ trocar engines --engine onnxruntime:libonnxruntime.so.1.31.1

$ trocar engines --engine tensorflow

$ trocar formats

$ trocar formats --json | python3 -m json.tool > /dev/null

$ trocar tools

$ trocar tools --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["schema"])'

$ trocar --version

$ trocar version

$ trocar version --json | python3 -m json.tool

