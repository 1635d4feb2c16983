# Reports go to files by their suffix, besides standard output.

$ trocar tools --report r.json --report r.csv --report r.md --report r.txt > stdout.txt

$ ls -I models
r.csv
r.json
r.md
r.txt
stdout.txt

$ python3 -m json.tool r.json > /dev/null

$ head -n 2 r.csv
name,summary
bisect,Find the first layer that makes two engines or models differ

$ head -n 4 r.md
# trocar tools

| Tool | What it does |
|:---|:---|

$ cmp r.txt stdout.txt

# Quiet: nothing but what is asked for.

$ trocar tools -q

$ trocar tools -q --report - | head -n 1
Tool       What it does

$ trocar tools -q --json | head -n 2
{
  "schema": "trocar.report/1",

# What cannot be written is said before the work begins; nothing is left half-written.

$ trocar tools --report r.pdf
trocar: the suffix of 'r.pdf' does not say what kind of report it is
  hint: known suffixes: .csv .json .xml .md .markdown .txt
[exit 2]

$ trocar tools --report r
trocar: the suffix of 'r' does not say what kind of report it is
  hint: known suffixes: .csv .json .xml .md .markdown .txt
[exit 2]

$ trocar tools --report no/such/folder/r.json
trocar: cannot write 'no/such/folder/r.json': there is no folder 'no/such/folder'
[exit 3]

$ mkdir folder.json; trocar tools -q --report folder.json --report other.json
trocar: cannot write 'folder.json': Is a directory
[exit 3]

$ ls -I models
folder.json
other.json
r.csv
r.json
r.md
r.txt
stdout.txt

# The reader may go away; a full disk is an error.

$ set -o pipefail; trocar man | head -n 1
.TH TROCAR 1 "" "trocar ..." "User Commands"

$ trocar formats > /dev/full
trocar: cannot write the output: No space left on device
[exit 3]

# Narrow, wide and plain.

$ trocar tools --width 40
Tool       What it does
────────────────────────────────────────
...
convert    Write a model in another
           format, or back with its
           external data where you want
           it
...

$ LC_ALL=C trocar formats | head -n 2
Format ... Suffixes ... Models ... Tensors ... What it is
----------------------------------------------------------------------------------------------------

$ trocar version --color always | cat -v
trocar    ...
Build     ...
Compiler  ...

