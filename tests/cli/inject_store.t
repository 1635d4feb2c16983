# Commands of a tool: each has its help, and a misspelt one is guessed.

$ trocar inject report --help | head -n 5
trocar inject report: Say what a campaign found: rates with intervals by layer,
bit and target

Usage: trocar inject report STORE [options]


$ trocar help inject merge | cmp - <(trocar inject merge --help)

$ trocar inject reprot run.db
trocar: inject has no command 'reprot'...
  hint: did you mean 'report'? `trocar inject --help` lists the commands
[exit 2]

$ trocar inject report
trocar: inject report needs STORE: Store of a campaign; it may be running still
  hint: `trocar inject report --help` lists the options
[exit 2]

# Files that are no store.

$ trocar inject report none.db
trocar: cannot open 'none.db': there is no such file
  hint: `trocar inject MODEL --store FILE` makes one
[exit 3]

$ echo 'a text that is no store' > text.db; trocar inject export text.db -o x.csv
trocar: 'text.db' is not the store of a campaign
[exit 3]

$ trocar inject merge text.db text.db --store all.db
trocar: 'text.db' is not the store of a campaign
[exit 3]

$ trocar inject merge text.db
trocar: inject merge needs --store FILE
  hint: The store to make of them
[exit 2]

$ trocar inject schema | python3 -c 'import json, sys; print(json.load(sys.stdin)["title"])'
A fault-injection campaign of trocar
