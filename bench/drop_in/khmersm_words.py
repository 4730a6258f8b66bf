"""khmersm: words of Khmer texts of several lengths."""
# packages: khmersm==1.4.2

from khmersm import Segmenter
from measured import measure

TEXTS = ("ខ្ញុំស្រឡាញ់ប្រទេសកម្ពុជា", "សួស្តី", "ភាសាខ្មែរជាភាសាផ្លូវការរបស់ប្រទេសកម្ពុជា ហើយមានអ្នកនិយាយច្រើន")

measure(Segmenter, lambda segmenter: {"words": [segmenter.segment(each) for each in TEXTS]})
