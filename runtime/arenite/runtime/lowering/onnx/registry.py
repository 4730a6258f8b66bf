"""What translates each operator of ONNX; the modules beside this one fill it."""

from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.lowering.translators import Translators

TRANSLATORS = Translators[Translation]()
translates = TRANSLATORS.translates
