"""Every figure that we state, as contests on one harness; the zoo of networks; emulated boards."""
