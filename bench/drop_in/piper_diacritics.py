"""piper-tts: diacritics of Arabic texts."""
# packages: piper-tts==1.8.0

from measured import measure
from piper.tashkeel import TashkeelDiacritizer

TEXTS = ("مرحبا بالعالم", "اللغة العربية جميلة")

measure(TashkeelDiacritizer, lambda model: {"texts": [model.diacritize(each) for each in TEXTS]})
