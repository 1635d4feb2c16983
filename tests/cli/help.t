$ trocar --help
trocar ...: read a neural network, cut it at any op, run it on a real engine

Usage: trocar TOOL MODEL [options]

Tools
  bisect      Find the first layer that makes two engines or models differ
  compare     Run a model on several engines and say for each layer whether they
              agree
  convert     Write a model in another format, or back with its external data
              where you want it
...

About trocar itself
  engines     List the engines found here, and how to get missing ones
  formats     List the file formats, and what can be read and written
  tools       List the tools
  version     Say which trocar this is
  help        Explain a tool or command
  completion  Print completions for a shell
  man         Print the manual page

`trocar TOOL -h` shows a tool's options, `trocar TOOL --help` explains them

$ trocar -h | cmp - <(trocar --help)

$ trocar help | cmp - <(trocar --help)

$ trocar engines -h
trocar engines: List the engines found here, and how to get missing ones

Usage: trocar engines [options]

Output  --json --report -q -v --color --width
Engine  --engine --threads --format --seed

`trocar engines --help` has all of it, with examples

$ trocar engines --help
trocar engines: List the engines found here, and how to get missing ones

Usage: trocar engines [options]

Output
  --json                  Print the report as JSON, with everything in it
  --report FILE           Also write the report to FILE; the suffix says how:
                          .json, .csv (the first table), .md, .xml (JUnit) or
                          .txt; - is standard output, as text (may be repeated)
  -q, --quiet             Print nothing but errors, and what --json and --report
                          ask for
  -v, --verbose           Say what is being done, and what the numbers depend on
  --color auto|always|never
                          Use colours (default auto)
  --width N               Columns of the text; 0: no limit; when not given,
                          those of the terminal

Engine
  --engine NAME[:PATH][,KEY=VALUE...]
                          Engine to run on, where it stands, and options for it,
                          such as provider=cuda; `trocar engines` lists what is
                          here
  --threads N             Threads the engine may use; 0: one per core (default
                          0)
  --format NAME           Format of the model file, where its content does not
                          tell
  --seed N                Seed of everything random (default 0)

Examples
  $ trocar engines
      which engine a run would use
  $ trocar engines --json
      the same for a program

Exit codes
  0     done
  1     the tool's answer is "no": outputs differ, a threshold is missed
  2     the command line is wrong
  3     a file cannot be read or written, or is not supported
  4     the engine is missing or failed
  70    a fault of trocar itself
  130   interrupted; the partial report is written

$ trocar help engines | cmp - <(trocar engines --help)

$ trocar completion --help
trocar completion: Print completions for a shell

Usage: trocar completion SHELL

  SHELL                   bash, zsh or fish

Examples
  $ source <(trocar completion bash)
      in this shell, from now on
  $ trocar completion fish > ~/.config/fish/completions/trocar.fish
      in every fish

# Help is given whatever else stands on the line, and fits the page.

$ trocar engines --nonsense --help | head -n 1
trocar engines: List the engines found here, and how to get missing ones

$ for tool in $(trocar tools --json | python3 -c 'import json, sys; print(*[t["name"] for t in json.load(sys.stdin)["tables"]["tools"]])'); do
>   trocar $tool --help | awk -v tool=$tool 'length > 100 { print tool ": too wide: " $0 }'
>   trocar $tool -h | awk -v tool=$tool 'END { if (NR > (tool == "inject" ? 75 : 40)) print tool ": " NR " lines" }'
> done

