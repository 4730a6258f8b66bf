"""nudenet: parts of the body in a picture."""
# packages: nudenet==3.4.2

from measured import SHARED, measure
from nudenet import NudeDetector

PICTURE = str(SHARED / "images" / "grace_hopper.bmp")


def call(detector):
    found = detector.detect(PICTURE)
    return {
        "classes": [each["class"] for each in found],
        "scores": [each["score"] for each in found],
        "boxes": [each["box"] for each in found],
    }


measure(NudeDetector, call)
