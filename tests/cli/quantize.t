# Smaller numbers, and what they cost.

$ trocar quantize digits/digits.onnx q.onnx --data digits/digits.npy --labels digits/digits_labels.npy -q --report q.json
$ python3 -c "import json; q = json.load(open('q.json'))['sections']; print(q['quantized']['ops'], q['quality']['accuracy_before'] - q['quality']['accuracy_after'] < 0.02)"
6 True
