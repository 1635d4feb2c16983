$ trocar --help

$ trocar -h | cmp - <(trocar --help)

$ trocar help | cmp - <(trocar --help)

$ trocar engines -h

$ trocar engines --help

$ trocar help engines | cmp - <(trocar engines --help)

$ trocar completion --help

# Help is given whatever else stands on the line, and fits the page.

$ trocar engines --nonsense --help | head -n 1

$ for tool in $(trocar tools --json | python3 -c 'import json, sys; print(*[t["name"] for t in json.load(sys.stdin)["tables"]["tools"]])'); do
>   trocar $tool --help | awk -v tool=$tool 'length > 100 { print tool ": too wide: " $0 }'
>   trocar $tool -h | awk -v tool=$tool 'END { if (NR > 40) print tool ": " NR " lines" }'
> done

