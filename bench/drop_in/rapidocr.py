"""rapidocr-onnxruntime: lines of text in a picture, found, turned and read."""
# packages: rapidocr-onnxruntime==1.4.4

import cv2
import numpy as np
from measured import measure
from rapidocr_onnxruntime import RapidOCR

PICTURE = np.full((240, 640, 3), 255, np.uint8)
for line, text in enumerate(["Arenite plans memory", "Hello World 2026", "one arena"]):
    place = (20, 60 + 70 * line)
    cv2.putText(PICTURE, text, place, cv2.FONT_HERSHEY_SIMPLEX, 1.5, (0, 0, 0), 3)


def call(engine):
    found, _ = engine(PICTURE)
    boxes, texts, scores = zip(*found, strict=True)
    return {"boxes": boxes, "texts": texts, "scores": scores}


measure(RapidOCR, call, calls=4)
