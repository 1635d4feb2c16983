# Reports go to files by their suffix, besides standard output.

$ trocar tools --report r.json --report r.csv --report r.md --report r.txt > stdout.txt

$ ls

$ python3 -m json.tool r.json > /dev/null

$ head -n 2 r.csv

$ head -n 4 r.md

$ cmp r.txt stdout.txt

# Quiet: nothing but what is asked for.

$ trocar tools -q

$ trocar tools -q --report - | head -n 1

$ trocar tools -q --json | head -n 2

# What cannot be written is said before the work begins; nothing is left half-written.

$ trocar tools --report r.pdf

$ trocar tools --report r

$ trocar tools --report no/such/folder/r.json

$ mkdir folder.json; trocar tools -q --report folder.json --report other.json

$ ls

# The reader may go away; a full disk is an error.

$ trocar man | head -n 1

$ trocar formats > /dev/full

# Narrow, wide and plain.

$ trocar tools --width 40

$ LC_ALL=C trocar formats | head -n 2

$ trocar version --color always | cat -v

