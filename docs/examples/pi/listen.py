"""Finds speech with Silero VAD: listen.py MODEL.arena, samples on standard input.

A sample has 16 bits, a second 16,000 samples.
"""

import sys

import numpy as np

import arenite


def main() -> None:
    with arenite.Session(sys.argv[1]) as session:
        samples, state, rate = session.inputs
        speech, next_state = session.outputs
        heard = np.zeros(samples.shape, np.float32)
        kept = np.zeros(state.shape, np.float32)
        while len(block := sys.stdin.buffer.read(1024)) == 1024:  # 512 samples, behind the last 64
            heard[0, :64] = heard[0, -64:]
            heard[0, 64:] = np.frombuffer(block, "<i2") / np.float32(32768)
            samples.view[...], state.view[...], rate.view[...] = heard, kept, 16000
            session.invoke()
            kept[...] = next_state.view
            if speech.view[0, 0] > 0.5:
                print(f"speech: {speech.view[0, 0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
