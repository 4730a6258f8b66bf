"""Training steps beside PyTorch: the error of their gradients, and what they learn.

    python bench/training_steps.py [--json] [--quick]

Gradients: the error of the whole gradient against 64 bits, ours in ONNX Runtime and in our runtime
and PyTorch's, all in 32 bits. Peaks: what a step has live at a batch of 8 besides its states,
batch norms folded. Learning: two networks on scikit-learn's digits, from the same weights on the
same batches, in our runtime within a fixed arena and in PyTorch, each in a process of its own.

Exits with 1 if an error of ours is more than three times PyTorch's, or if a network of ours names
more held-out digits wrongly than PyTorch's by over half a percent, on the mean of the seeds.
"""

import sys
from collections.abc import Sequence

from harness import bench, emit, note, parser, table

NUM_SEEDS = 5
MOST_LOST = 0.005
"""Share of the held-out digits that ours may lose on the mean."""


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a claim does not hold."""
    import torch

    from learning import from_scratch, gradients, peaks

    options = parser(__doc__)
    options.add_argument("--quick", action="store_true", help="two networks, one seed, one epoch")
    parsed = options.parse_args(arguments)
    torch.set_num_threads(1)
    found = []
    for name in list(gradients.NETWORKS)[: 1 if parsed.quick else None]:
        found.append(gradients.measured(name))
        note(f"gradients: {name}")
    live = []
    for name in () if parsed.quick else peaks.NETWORKS:
        live.append(peaks.peak(name))
        note(f"peak: {name}")
    rows = []
    for name in from_scratch.NETWORKS:
        for seed in range(1 if parsed.quick else NUM_SEEDS):
            rows.append(
                from_scratch.learned(name, seed, 1 if parsed.quick else from_scratch.EPOCHS)
            )
            note(f"learning: {name}, seed {seed}")
    emit(
        parsed,
        {"gradients": found, "peaks": live, "learning": rows},
        table(
            "Error of the whole gradient against 64 bits, in 32 bits",
            ("network", "weights", "in ONNX Runtime", "in our runtime", "PyTorch", "ratio"),
            [
                (r.network, f"{r.parameters:,}", f"{r.ours:.2e}", f"{r.native:.2e}",
                 f"{r.pytorch:.2e}", f"{max(r.ours, r.native) / r.pytorch:.2f}")
                for r in found
            ],
        ),
        table(
            f"Live at once in a step of {peaks.BATCH} images",
            ("network", "operators", "live, B", "states beside it, B"),
            [
                (r.network, f"{r.operators:,}", f"{r.live_bytes:,}", f"{r.state_bytes:,}")
                for r in live
            ],
        ),
        table(
            "Held-out digits named wrongly, and memory",
            ("network", "seed", "held out", "ours", "PyTorch", "arena, B", "states in it, B",
             "our process, B", "PyTorch's, B"),
            [
                (r.network, str(r.seed), str(r.held_out), str(r.ours), str(r.pytorch),
                 f"{r.arena_bytes:,}", f"{r.state_bytes:,}", f"{r.our_rss_bytes:,}",
                 f"{r.pytorch_rss_bytes:,}")
                for r in rows
            ],
        ),
    )  # fmt: skip
    lost = [
        sum(r.ours - r.pytorch for r in rows if r.network == name)
        / sum(r.held_out for r in rows if r.network == name)
        for name in from_scratch.NETWORKS
    ]
    return int(not (all(r.holds for r in found) and max(lost) <= MOST_LOST))


if __name__ == "__main__":
    sys.exit(main())
