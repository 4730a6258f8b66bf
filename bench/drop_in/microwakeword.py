"""microWakeWord plugin of OVOS: three wake words in 5 s of sound, by models with variables."""
# packages: ovos-ww-plugin-microwakeword==0.0.3a1 pymicro-wakeword==2.5.0 ai-edge-litert

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from measured import measure, signal
from ovos_ww_plugin_microwakeword.inference import MicroWakeWordEngine

SOUND = (signal(5, 16000) * 20000).astype(np.int16).tobytes()
MODELS = Path(find_spec("pymicro_wakeword").submodule_search_locations[0], "models")


def call(engines):
    return {name: each.process_audio(SOUND) for name, each in engines.items()}


measure(
    lambda: {
        name: MicroWakeWordEngine(str(MODELS / f"{name}.tflite"))
        for name in ("okay_nabu", "alexa", "hey_jarvis")
    },
    call,
)
