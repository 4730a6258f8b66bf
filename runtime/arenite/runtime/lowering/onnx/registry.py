"""The translators of ONNX operators; the modules beside this one add to it."""

from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.lowering.translators import Translators

TRANSLATORS = Translators[Translation]()
translates = TRANSLATORS.translates
