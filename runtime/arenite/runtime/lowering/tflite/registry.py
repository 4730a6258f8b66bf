"""What translates each operator of TFLite; the modules beside this one fill it."""

from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.lowering.translators import Translators

TRANSLATORS = Translators[Translation]()
translates = TRANSLATORS.translates
