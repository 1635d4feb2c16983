# Every mistake on the command line is one sentence, a hint, and exit code 2.

$ trocar 2>&1 | head -n 3
trocar ...: read a neural network, cut it at any op, run it on a real engine

Usage: trocar TOOL MODEL [options]

$ trocar > /dev/null 2>&1
[exit 2]

$ trocar engnies
trocar: no tool named 'engnies'
  hint: did you mean 'engines'? `trocar --help` lists all tools
[exit 2]

$ trocar xyzzy
trocar: no tool named 'xyzzy'
  hint: `trocar --help` lists all tools
[exit 2]

$ touch model.onnx; trocar model.onnx
trocar: 'model.onnx' is a file, not a tool
  hint: the tool comes first: trocar TOOL model.onnx; `trocar --help` lists all tools
[exit 2]

$ trocar --json
trocar: no tool is named
  hint: `trocar --help` lists all tools
[exit 2]

$ trocar engines --jsno
trocar: engines has no option '--jsno'
  hint: did you mean '--json'? `trocar engines --help` lists the options
[exit 2]

$ trocar engines --theads=3
trocar: engines has no option '--theads'
  hint: did you mean '--threads'? `trocar engines --help` lists the options
[exit 2]

$ trocar engines -x
trocar: engines has no option '-x'
  hint: `trocar engines --help` lists the options
[exit 2]

$ trocar engines further
trocar: engines takes no further argument 'further'
  hint: `trocar engines --help` lists the options
[exit 2]

$ trocar engines --threads many
trocar: --threads takes a whole number, not 'many'
[exit 2]

$ trocar engines --threads -1
trocar: --threads must be between 0 and 4096
  hint: 0 means one per core
[exit 2]

$ trocar engines --threads
trocar: --threads needs a value
  hint: --threads N: Threads the engine may use
[exit 2]

$ trocar engines --engine --json
trocar: --engine needs a value
  hint: --engine NAME[:PATH][,KEY=VALUE...]: Engine to run on, where it stands, and options for it, such as provider=cuda
[exit 2]

$ trocar engines --engine onnxruntime --engine=openvino
trocar: engines takes one --engine, and is given 'onnxruntime', 'openvino'
  hint: `trocar compare` and `trocar bisect` take several engines
[exit 2]

$ trocar run no.onnx --engine reference --engine reference
trocar: run takes one --engine, and is given 'reference', 'reference'
  hint: `trocar compare` and `trocar bisect` take several engines
[exit 2]

$ trocar engines --seed 1e3
trocar: --seed takes a whole number, not '1e3'
[exit 2]

$ trocar engines --color sometimes
trocar: --color cannot be 'sometimes'
  hint: one of: auto, always, never
[exit 2]

$ trocar engines --quiet --verbose
trocar: --quiet and --verbose contradict each other
[exit 2]

$ trocar engines --json --report -
trocar: --json and --report - both want standard output
  hint: give one of them a file: --report FILE.json
[exit 2]

$ trocar engines --engine ,
trocar: engine ',' has no name
  hint: write NAME[:PATH][,key=value…], as in onnxruntime:/opt/ort/lib,provider=cuda
[exit 2]

$ trocar engines --width 5
trocar: --width must be at least 20
  hint: 0 means no limit
[exit 2]

$ trocar completion
trocar: completion needs SHELL: bash, zsh or fish
  hint: `trocar completion --help` lists the options
[exit 2]

$ trocar completion tcsh
trocar: no completion for the shell 'tcsh'
  hint: bash, zsh and fish are known
[exit 2]

$ trocar help tool
trocar: no tool named 'tool'
  hint: did you mean 'tools'? `trocar --help` lists all tools
[exit 2]

