trocar inject model.onnx --input input.npy --target activations --at Conv --faults 1000
