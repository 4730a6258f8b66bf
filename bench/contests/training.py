"""Training steps beside PyTorch and ONNX Runtime, and compressed networks on digits."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import onnx

from arenite.compression.retrain import weights_of
from arenite.training import make_step, read_for_training
from arenite.training.step import TrainingRecipe
from bench.digits.comparison import RECIPES, Fold, compared, folds, layers_of, write_assets
from bench.digits.recipes import first_fold
from bench.harness.contest import TABLE, Asked, Row, chosen, contest, note, option
from bench.harness.measuring import Spread, in_fresh_process, interleaved, paired_ratios
from bench.learning import step_files
from bench.learning.alone import ours, theirs
from bench.zoo.classic import resnet50, unet, vgg16
from bench.zoo.mobilenets import mobilenet_v2

_GRADIENTS = "Error of the whole gradient against 64 bits, in 32 bits"
_LIVE = "Live at once in a step of 8 images"
_DIGITS = "Held-out digits classified wrongly, and memory"
NUM_SEEDS, MOST_LOST = 5, 0.005
LIVE: Mapping[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "mobilenet-v2": (mobilenet_v2, "cross-entropy"),
    "resnet50": (resnet50, "cross-entropy"),
    "unet": (unet, "bce"),
    "vgg16": (vgg16, "cross-entropy"),
}
"""Networks by name, with their loss."""


@contest(
    {
        _GRADIENTS: {"network": "", "weights": "", "ours in ONNX Runtime": ".2e",
                     "ours in our runtime": ".2e", "PyTorch": ".2e", "ratio": ".2f"},
        _LIVE: {"network": "", "operators": "", "live, B": "", "states, B": ""},
        _DIGITS: {"network": "", "seed": "", "held out": "", "wrong, ours": "",
                  "wrong, PyTorch": "", "arena, B": "", "states in it, B": "",
                  "our process, B": "", "PyTorch's, B": ""},
    },
    options=[option("--quick", action="store_true", help="one network, one seed, one epoch")],
)  # fmt: skip
def training_steps(asked: Asked) -> Iterator[Row]:
    """Training steps beside PyTorch: the error of their gradients, memory, and learning.

    Gradients: the error of the whole gradient against 64 bits, ours in ONNX Runtime and in our
    runtime, and PyTorch's, all in 32 bits; ours may be three times PyTorch's. Live bytes: a step
    of `sgd` at a batch of 8 besides its states, batch norms folded. Learning: two networks on
    scikit-learn's digits, from the same weights on the same batches, in our runtime in a fixed
    arena and in PyTorch, each in a process of its own; ours may classify half a percent more of
    the held-out digits wrongly, on the mean of the seeds.
    """
    import torch

    from bench.learning import from_scratch, gradients

    torch.set_num_threads(1)
    quick = asked.given.quick
    for name in list(gradients.NETWORKS)[: 1 if quick else None]:
        error = gradients.measured(name)
        worst = max(error.ours, error.native)
        asked.require(error.holds, f"{name}: a gradient as PyTorch's")
        yield {
            TABLE: _GRADIENTS, "network": name, "weights": error.parameters,
            "ours in ONNX Runtime": error.ours, "ours in our runtime": error.native,
            "PyTorch": error.pytorch, "ratio": worst / error.pytorch,
        }  # fmt: skip
    for name in () if quick else LIVE:
        yield {TABLE: _LIVE, "network": name, **live(name, asked.folder)}
    for name in from_scratch.NETWORKS:
        lost, count = 0, 0
        for seed in range(1 if quick else NUM_SEEDS):
            note(f"learning: {name}, seed {seed}")
            each = from_scratch.learned(name, seed, 1 if quick else from_scratch.EPOCHS)
            lost += each.ours - each.pytorch
            count += each.held_out
            yield {
                TABLE: _DIGITS, "network": name, "seed": seed, "held out": each.held_out,
                "wrong, ours": each.ours, "wrong, PyTorch": each.pytorch,
                "arena, B": each.arena_bytes, "states in it, B": each.state_bytes,
                "our process, B": each.our_rss_bytes, "PyTorch's, B": each.pytorch_rss_bytes,
            }  # fmt: skip
        asked.require(lost / count <= MOST_LOST, f"{name}: learns as in PyTorch")


def live(name: str, folder: Path) -> Row:
    """Return operators, live bytes and states of a step of `sgd` at a batch of 8."""
    build, loss = LIVE[name]
    path = folder / "model.onnx"
    onnx.save(build(), path)
    step = make_step(read_for_training(path, 8), TrainingRecipe(loss))
    states = sum(each.size for each in step.state_types.values())
    return {"operators": len(step.model.graph.node), "live, B": step.peak, "states, B": states}


@contest(
    {"A step of training beside ONNX Runtime": {
        "step": "", "latency": ".2f", "ours, ms": ".2f", "ONNX Runtime, ms": ".2f",
        "our process, B": "", "ONNX Runtime's, B": "",
    }},
    rounds=5,
    options=[option("--seconds", type=float, default=1.0, help="seconds of a process")],
)  # fmt: skip
def training_latency(asked: Asked) -> Iterator[Row]:
    """Training steps in our runtime beside ONNX Runtime: time of a step, and peak memory.

    Steps of momentum with two images, one thread each, in fresh processes, in turn; processor
    time. Below 1 ours is faster. Memory is the largest peak of a process, interpreter included.
    """
    for name, model, loss in step_files.networks():
        note(name)
        with tempfile.TemporaryDirectory() as folder:
            step_files.prepare(Path(folder), model, loss)
            found = interleaved(
                {
                    each.__name__: partial(in_fresh_process, each, folder, asked.given.seconds)
                    for each in (ours, theirs)
                },
                asked.rounds,
            )
        times = {key: [second for second, _ in each] for key, each in found.items()}
        peaks = {key: max(peak for _, peak in each) for key, each in found.items()}
        yield {
            "step": name, "latency": paired_ratios(times["ours"], times["theirs"]),
            "ours, ms": 1e3 * Spread.of(times["ours"]).median,
            "ONNX Runtime, ms": 1e3 * Spread.of(times["theirs"]).median,
            "our process, B": peaks["ours"], "ONNX Runtime's, B": peaks["theirs"],
        }  # fmt: skip


_VARIANTS = "Digits: compressed networks and small dense ones"
_LAYERS = "Layers of the first fold"


@contest(
    {
        _VARIANTS: {"network": "", "variant": "", "folds": "", "dense error, %": ".2f",
                    "error, %": ".2f", "difference, points": "", "upper bound": "+.2f",
                    "bytes": ",.0f", "ratio": ".1f", "least": ".1f"},
        _LAYERS: {"layer": "", "weights": "", "kept": ".1%", "bits": "", "entropy": ".2f",
                  "bytes": "", "rate": ".2%"},
    },
    options=[
        option("networks", nargs="*", metavar="NETWORK", help=", ".join(RECIPES)),
        option("--quick", action="store_true", help="an epoch of each kind, two folds"),
        option("--write-assets", type=Path, metavar="FOLDER"),
    ],
)  # fmt: skip
def digits_compression(asked: Asked) -> Iterator[Row]:
    """Networks on scikit-learn's digits, compressed, beside dense and small dense ones.

    Each fold trains a dense network, compresses it with its dense self as teacher, and trains a
    small dense network of about as many bytes with the same teacher, rounded to int8. Errors are
    those on the held-out tenth of the digits. All bytes of the container count. A compressed
    network must be 35 times smaller on the mean of the folds, and the 95 % interval of the mean
    difference must stay below a loss of 0.3 points. The recipes are in
    `bench/digits/comparison.py`.
    """
    names = chosen(asked.given.networks, RECIPES, "network")
    recipes = {name: RECIPES[name] for name in names}
    if asked.given.quick:
        recipes = {name: each.shortened() for name, each in recipes.items()}
    if asked.given.write_assets:
        write_assets(asked.given.write_assets, recipes)
        return
    for network, recipe in recipes.items():
        measured: list[Fold] = []
        for fold in islice(folds(recipe), 2 if asked.given.quick else None):
            measured.append(fold)
            note(f"{network}: fold {len(measured)}")
        for each in compared(network, measured):
            if each.variant == "compressed":
                asked.require(each.holds, f"{network}: as small and as accurate as stated")
            yield {
                TABLE: _VARIANTS, "network": network, "variant": each.variant,
                "folds": each.num_folds, "dense error, %": each.dense_error,
                "error, %": each.error,
                "difference, points": f"{each.difference:+.2f} ± {each.margin:.2f}",
                "upper bound": each.difference + each.margin, "bytes": each.size,
                "ratio": each.ratio, "least": each.least_ratio,
            }  # fmt: skip
    for network, recipe in recipes.items():
        for layer in layers_of(weights_of(first_fold(recipe)[2].model)):
            yield {
                TABLE: _LAYERS, "layer": f"{network}: {layer.name}",
                "weights": layer.num_weights, "kept": layer.kept, "bits": layer.bits,
                "entropy": layer.entropy_bits, "bytes": layer.size, "rate": layer.rate,
            }  # fmt: skip
