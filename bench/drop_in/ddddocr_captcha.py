"""ddddocr: a captcha read, and its characters found."""
# packages: ddddocr==1.6.1

import cv2
import ddddocr
import numpy as np
from measured import measure

PICTURE = np.full((64, 160, 3), 255, np.uint8)
cv2.putText(PICTURE, "8k3Fq", (10, 45), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (0, 0, 0), 3)
BYTES = cv2.imencode(".png", PICTURE)[1].tobytes()


def prepare():
    return ddddocr.DdddOcr(show_ad=False), ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)


def call(engines):
    reader, detector = engines
    return {"text": reader.classification(BYTES), "boxes": detector.detection(BYTES)}


measure(prepare, call, calls=5)
