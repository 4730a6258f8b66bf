"""Classifies frames of a camera: watch.py MODEL.arena [LABELS.txt], frames on standard input.

A frame is as large as the model's image, three bytes a pixel. The model sees the byte, byte - 128
or (byte - 127.5) / 127.5: what it was trained on is for you to know.
"""

import sys
from pathlib import Path

import numpy as np

import arenite


def main() -> None:
    labels = Path(sys.argv[2]).read_text().splitlines() if sys.argv[2:] else None
    with arenite.Session(sys.argv[1]) as session:
        image, scores = session.inputs[0], session.outputs[0]
        channels_first = image.shape[1] == 3
        rows, columns = image.shape[2:] if channels_first else image.shape[1:3]
        size = rows * columns * 3
        while len(frame := sys.stdin.buffer.read(size)) == size:
            pixels = np.frombuffer(frame, np.uint8).reshape(1, rows, columns, 3)
            if image.dtype == np.float32:
                pixels = (pixels - np.float32(127.5)) / np.float32(127.5)
            elif image.dtype == np.int8:
                pixels = (pixels ^ 128).view(np.int8)
            image.view[...] = pixels.transpose(0, 3, 1, 2) if channels_first else pixels
            session.invoke()
            best = int(scores.view.argmax())
            print(labels[best] if labels else best, f"{scores.view.flat[best]:.3g}", flush=True)


if __name__ == "__main__":
    main()
