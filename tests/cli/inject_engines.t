# Every engine gives the same rows in a process of its own as in this one, and no fault in these networks makes one fail.

$ cp "$TROCAR_SOURCE"/models/digits.onnx "$TROCAR_SOURCE"/tests/formats/executorch/net.pte .
> cat > try <<'END'
> for target in weights activations; do
>   for how in "" --no-isolate; do
>     name=$2$how.$target
>     trocar inject $1 --engine $2 --fill random --target $target --faults 40 --workers 2 --store $name.db $how > $name.txt || exit
>     trocar inject export $name.db -o $name.csv -q
>   done
>   cmp $2.$target.csv $2--no-isolate.$target.csv
>   cut -d, -f3 $2.$target.csv | grep failed; grep 'not isolated' $2.$target.txt
> done
> END
> trocar engines --json | python3 -c 'import json, sys; print(*{e["name"] for e in json.load(sys.stdin)["tables"]["engines"] if e["available"]}, sep="\n")' > engines
> grep -c . engines > /dev/null
> for engine in $(cat engines); do bash try digits.onnx $engine; done; rm *.db *.csv; bash try net.pte executorch; true

# The view is the engine's own where it has one, and the stores say which it is.

$ trocar inject net.pte --fill random --target weights --faults 10 --store pte.db -q; trocar inject digits.onnx --fill random --target weights --faults 10 --store onnx.db -q
> for store in pte onnx; do trocar inject report $store.db --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["context"]["view"])'; done
source
deployed

$ trocar inject digits.onnx --fill random --target weights --faults 10 --view auto --store onnx.db --resume -q

$ trocar inject digits.onnx --fill random --target weights --faults 10 --view source --store onnx.db --resume -q
trocar: the store 'onnx.db' is of another campaign: 'view: deployed' in the store, 'view: source' here
  hint: name another file for this campaign
[exit 2]

# Processes with engines of their own end with the command that asked for them, and what it has is right.

$ campaign() { timeout -s $1 $2 trocar inject digits.onnx --engine openvino --fill random --target weights --faults 300 --store $3.db -q $4; }
> campaign KILL 100 all; (campaign KILL 2 killed; true) 2> /dev/null; sleep 0.5; ps -eo args | grep -c '[k]illed.db'
> [ -e killed.db ] && more=--resume || more=; campaign INT 2 killed $more; more=--resume; [ -e killed.db ] || more=; campaign KILL 100 killed $more
> for store in all killed; do trocar inject export $store.db -o $store.csv -q; done; cmp all.csv killed.csv
0
