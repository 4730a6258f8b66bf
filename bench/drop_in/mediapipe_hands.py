"""MediaPipe's hands: the most likely palm of a picture and its landmarks, by anchors."""
# packages: pillow ai-edge-litert
# alone: mediapipe==0.10.14

from importlib.util import find_spec
from pathlib import Path

from ai_edge_litert.interpreter import Interpreter
from measured import SHARED, measure
from mediapipe_anchors import detect, outputs, region, tensor
from PIL import Image

MODELS = Path(find_spec("mediapipe").submodule_search_locations[0], "modules")
PICTURE = Image.open(SHARED / "images" / "grace_hopper.bmp").convert("RGB")


def prepare():
    names = "palm_detection/palm_detection_full", "hand_landmark/hand_landmark_full"
    made = [Interpreter(model_path=str(MODELS / f"{name}.tflite")) for name in names]
    for each in made:
        each.allocate_tensors()
    return made


def call(models):
    palms, hands = models
    score, points = detect(palms, PICTURE, (8, 16, 16, 16), 0)
    part = region(PICTURE, points[0], 1.3 * abs(points[1]).max())
    return {"score": score, "palm": points, **outputs(hands, tensor(part, 224, 0))}


measure(prepare, call)
