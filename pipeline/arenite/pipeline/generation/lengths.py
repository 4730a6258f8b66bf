"""The lengths of a decoder as exporters name them: new tokens, past ones, and all."""

from pathlib import Path

from arenite.pipeline.base.reading import StatedDims
from arenite.pipeline.generation.errors import NoDecoderError
from arenite.planner import open_shapes
from arenite.planner.sizes import Dimension

TOKENS = ("input_ids", "decoder_input_ids")
MASKS = ("attention_mask", "decoder_attention_mask")
POSITIONS = ("position_ids",)
_PAST = "past"


def decoder_dims(path: Path, length: int, chunk: int, dims: StatedDims) -> StatedDims:
    """Return values for the free dimensions of a decoder: batch 1, and ranges of tokens.

    New tokens are 1 to `chunk` in a run, the past grows up to `length` tokens with the new ones,
    and masks have both. A model without a past takes 1 to `length` tokens.

    Args:
        path: An ONNX model.
        length: Most tokens of a text.
        chunk: Most tokens of one run.
        dims: Values that the user gives; they are kept.

    Raises:
        NoDecoderError: No input has the name of tokens.
        ModelError: The model cannot be read.
    """
    shapes = open_shapes(path)
    tokens = next((shapes[name] for name in TOKENS if name in shapes), None)
    if tokens is None or len(tokens) != 2:  # batch and tokens
        raise NoDecoderError(
            path.name,
            f"no input of shape batch x tokens is named {' or '.join(map(repr, TOKENS))}; inputs: "
            f"{', '.join(map(repr, shapes))}",
        )
    batch, new = tokens
    past = {
        each
        for name, shape in shapes.items()
        if name.startswith(_PAST)
        for each in shape
        if isinstance(each, str) and each not in (batch, new) and not _is_of_encoder(each)
    }
    found: dict[str, int | str | Dimension] = {}
    if isinstance(new, str):
        found[new] = _range(1, min(chunk, length) if past else length)
    found.update(dict.fromkeys(sorted(past), f"0..{length - 1}+"))
    all_of = [str(each) for each in (min(past, default=""), new) if each]
    for name in MASKS:
        total = shapes.get(name, (1, 1))[-1]
        if isinstance(total, str) and total != new:
            found.setdefault(total, "+".join(all_of) if past else _range(1, length))
    for shape in shapes.values():  # others are batches
        found.update({each: 1 for each in shape if isinstance(each, str) and each not in found})
    return {**found, **dims}


def _range(low: int, high: int) -> int | str:
    return high if low == high else f"{low}..{high}"


def _is_of_encoder(dimension: str) -> bool:
    return "encoder" in dimension.replace("decoder", "")
