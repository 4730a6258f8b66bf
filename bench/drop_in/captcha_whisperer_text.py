"""captcha-whisperer: a captcha read by a convolutional recurrent network."""
# packages: captcha-whisperer==0.1.0 opencv-python-headless

import cv2
import numpy as np
from captcha_whisperer import CaptchaRecognizer
from measured import measure

PICTURE = np.full((60, 160, 3), 255, np.uint8)
cv2.putText(PICTURE, "8k3Fq", (10, 45), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (0, 0, 0), 3)
BYTES = cv2.imencode(".png", PICTURE)[1].tobytes()


def call(recognizer):
    found = recognizer.recognize_bytes(BYTES)
    return {"text": found["text"], "scores": found["char_confidences"]}


measure(CaptchaRecognizer, call)
