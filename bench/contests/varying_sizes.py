"""One program for all sizes of a range, beside a program for each size and ONNX Runtime."""

_RUNS = "1,000 runs at random sizes"
_SIZES = "Latency at a size, over that of the program for this size alone"
_SECONDS = 0.1
