"""`python -m bench.zoo NAME -o FILE.onnx` writes one network."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import onnx

from bench.zoo import CELLS, EDGE, MEDIAPIPE, NETWORKS, OPEN, SEQUENCES, SMALL, TRANSFORMERS

_NAMED = {**NETWORKS, **CELLS, **MEDIAPIPE, **SMALL, **EDGE, **SEQUENCES, **OPEN, **TRANSFORMERS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the network the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.zoo", description="Write a network as ONNX."
    )
    parser.add_argument("name", choices=_NAMED)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.onnx")
    options = parser.parse_args(arguments)
    onnx.save(_NAMED[options.name](), options.output)


if __name__ == "__main__":
    main()
