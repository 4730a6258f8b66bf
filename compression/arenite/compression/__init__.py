"""Deep Compression: prune, share weights, Huffman-code; and what it costs.

The way through, one module an arrow::

    ONNX file -> onnx_model -> Layer -> prune -> share -> coding -> Code

`pipeline` does it for a whole model by a `Recipe`, `evaluate` and `sensitivity` judge the result,
`container` keeps coded weights by name, `training` retrains what was pruned and shared.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016.
"""
