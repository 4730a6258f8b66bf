"""MediaPipe's pose: the most likely person of a picture, landmarks and a mask, by anchors."""
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
    names = (
        "pose_detection/pose_detection",
        "pose_landmark/pose_landmark_full",
        "selfie_segmentation/selfie_segmentation",
    )
    made = [Interpreter(model_path=str(MODELS / f"{name}.tflite")) for name in names]
    for each in made:
        each.allocate_tensors()
    return made


def call(models):
    people, poses, masks = models
    score, points = detect(people, PICTURE, (8, 16, 32, 32, 32), -1)
    part = region(PICTURE, points[2], abs(points[3] - points[2]).max())
    found = outputs(poses, tensor(part, 256, 0))
    (mask,) = outputs(masks, tensor(PICTURE, 256, 0)).values()
    return {"score": score, "person": points, **found, "mask": mask}


measure(prepare, call)
