"""Embeds texts: embed.py MODEL.arena, a text a line on standard input.

Each byte of a text is a token here; a real encoder has a tokeniser and a table of its own.
"""

import sys

import numpy as np

import arenite

TABLE = np.random.default_rng(0).standard_normal((256, 256), dtype=np.float32)


def main() -> None:
    with arenite.Session(sys.argv[1]) as session:
        (tokens,) = session.dimensions
        for line in sys.stdin.buffer:
            text = line.rstrip(b"\n")[: tokens.high] or b" "
            embeddings = TABLE[np.frombuffer(text, np.uint8)][np.newaxis]
            states = session.run({"embeddings": embeddings})["states"]
            embedding = states.mean(axis=1)
            print(len(text), f"{np.linalg.norm(embedding):.2f}", flush=True)


if __name__ == "__main__":
    main()
