trocar inject model.onnx --input input.npy --target weights --at Conv --faults 1000
