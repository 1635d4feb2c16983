# Every mistake on the command line is one sentence, a hint, and exit code 2.

$ trocar 2>&1 | head -n 3

$ trocar > /dev/null 2>&1

$ trocar sumary model.onnx

$ trocar xyzzy

$ touch model.onnx; trocar model.onnx

$ trocar --json

$ trocar engines --jsno

$ trocar engines --theads=3

$ trocar engines -x

$ trocar engines further

$ trocar engines --threads many

$ trocar engines --threads -1

$ trocar engines --threads

$ trocar engines --engine --json

$ trocar engines --seed 1e3

$ trocar engines --color sometimes

$ trocar engines --quiet --verbose

$ trocar engines --json --report -

$ trocar engines --engine ,

$ trocar engines --width 5

$ trocar completion

$ trocar completion tcsh

$ trocar help sumary

