#!/bin/sh
# Five frames a second, as large as the model's image.
rpicam-vid --nopreview --timeout 0 --width 640 --height 480 --framerate 5 --codec mjpeg -o - |
  ffmpeg -loglevel error -f mjpeg -i - -vf scale=96:96 -pix_fmt rgb24 -f rawvideo - |
  arenite/bin/python watch.py model.arena
