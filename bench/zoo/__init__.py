"""Classic networks as ONNX, with seeded weights: real graphs that run, untrained."""

from collections.abc import Callable
from functools import partial

import onnx

from bench.zoo.cells import darts, randwire, swiftnet
from bench.zoo.classic import densenet121, inception_v3, resnet50, unet
from bench.zoo.decoders import language_model
from bench.zoo.detecting import detector
from bench.zoo.edge import bert_layers, deit_tiny, efficientnet_b0, mobilenet_v3, yolov8n
from bench.zoo.encoders import bert, vit
from bench.zoo.llama import smollm
from bench.zoo.mediapipe import blazeface, face_mesh, hand_landmark, palm_detection
from bench.zoo.microcontrollers import (
    IMAGENET,
    MSF_MOBILENET,
    VWW,
    anomaly_detector,
    chained,
    mcunet,
)
from bench.zoo.mobilenets import deeplab_v3, mobilenet_v1, mobilenet_v2, posenet
from bench.zoo.opened import opened
from bench.zoo.sensors import bird_song, heart_beats, music
from bench.zoo.sequences import espcn, recurrent, temporal, transformer, vocoder, wake_word
from bench.zoo.speech import moonshine_encoder, whisper_decoder, whisper_encoder

NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet-v1": mobilenet_v1,
    "mobilenet-v2": mobilenet_v2,
    "deeplab-v3": deeplab_v3,
    "inception-v3": inception_v3,
    "posenet": posenet,
    "blazeface": blazeface,
    "resnet50": resnet50,
    "densenet121": densenet121,
    "unet": unet,
    "mobilenet-v1-0.25-96": partial(mobilenet_v1, size=96, width=0.25, classes=2),
}
"""By name; the first six are those of Pisarchyk and Lee 2020, in their order."""

CELLS: dict[str, Callable[[], onnx.ModelProto]] = {
    "darts": darts,
    "swiftnet-a": partial(swiftnet, 56, seed=0),
    "swiftnet-b": partial(swiftnet, 28, seed=1),
    "swiftnet-c": partial(swiftnet, 14, seed=2),
    "randwire-78-a": partial(randwire, 78, seed=0),
    "randwire-78-b": partial(randwire, 78, seed=1),
    "randwire-156-a": partial(randwire, 156, size=8, seed=2),
    "randwire-156-b": partial(randwire, 156, size=8, seed=3),
    "randwire-312": partial(randwire, 312, size=4, seed=4),
}
"""Cells of networks that were searched for or wired at random, where the order matters."""

MEDIAPIPE: dict[str, Callable[[], onnx.ModelProto]] = {
    "palm-detection": palm_detection,
    "hand-landmark": hand_landmark,
    "face-mesh": face_mesh,
}
"""Networks of the kinds that MediaPipe publishes; BlazeFace is among the first."""

SEQUENCES: dict[str, Callable[[], onnx.ModelProto]] = {
    "lstm": partial(recurrent, "LSTM"),
    "lstm-bidirectional": partial(recurrent, "LSTM", "bidirectional"),
    "gru": partial(recurrent, "GRU"),
    "gru-bidirectional": partial(recurrent, "GRU", "bidirectional"),
    "encoder": transformer,
    "decoder": partial(transformer, tokens=1, past=255),
    "temporal": temporal,
    "vocoder": vocoder,
    "espcn": espcn,
}
"""Networks of sequences and of sound, and one that enlarges images."""

SMALL: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet-v2-0.35-144": partial(mobilenet_v2, size=144, classes=1000, width=0.35, divisor=8),
    "msf-mobilenet-v2-0.35-144": partial(chained, 144, MSF_MOBILENET, 11, last=448),
    "msf-vww-80": partial(chained, 80, VWW, 16, narrowed=8),
    "msf-imagenet-176": partial(chained, 176, IMAGENET, 16, narrowed=8),
    "mcunet-vww-80": partial(mcunet, 80, VWW, 2),
    "mcunet-imagenet-176": partial(mcunet, 176, IMAGENET, 1000),
    "anomaly-detector": anomaly_detector,
    "wake-word": wake_word,
    "heart-beats": heart_beats,
    "bird-song": bird_song,
    "music": music,
}
"""Networks for microcontrollers of which others publish figures."""

EDGE: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet-v3": mobilenet_v3,
    "efficientnet-b0": efficientnet_b0,
    "yolov8n": yolov8n,
    "bert-mini": bert_layers,
    "minilm-layers": partial(bert_layers, layers=6, features=384, heads=12),
    "deit-tiny": deit_tiny,
}
"""Networks that edge devices run today."""

OPEN: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert-mini-open": partial(opened, bert_layers, 128, 64, "tokens"),
    "yolov8n-open": partial(opened, yolov8n, 320, 256, "pixels"),
    "detector-open": detector,
    "mobilenet-v2-open": partial(
        opened, partial(mobilenet_v2, classes=1000, width=0.35), 224, 160, "pixels"
    ),
    "gru-open": partial(opened, partial(recurrent, "GRU", "forward", 128), 100, 50, "frames"),
    "temporal-open": partial(opened, temporal, 8000, 4000, "samples"),
    "vocoder-open": partial(opened, vocoder, 32, 16, "frames"),
    "decoder-open": language_model,
    "decoder-tiny": partial(
        language_model, layers=2, features=32, heads=2, vocabulary=96, most=256
    ),
}
"""Networks whose length is left open: tokens, pixels, frames or samples."""

_MINILM = partial(bert, layers=6, features=384, heads=12)
_BERT_TINY = partial(bert, layers=2, features=128, heads=2)
_SMOLLM_360M = partial(smollm, layers=32, features=960, heads=15, key_heads=5, inner=2560)

TRANSFORMERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert-tiny": _BERT_TINY,
    "bert-tiny-fused": partial(_BERT_TINY, fused=True),
    "bert-mini-embedded": bert,
    "bert-mini-embedded-fused": partial(bert, fused=True),
    "minilm": _MINILM,
    "minilm-fused": partial(_MINILM, fused=True),
    "vit-tiny": vit,
    "vit-tiny-fused": partial(vit, fused=True),
    "smollm-135m": smollm,
    "smollm-135m-fused": partial(smollm, fused=True),
    "smollm-360m": _SMOLLM_360M,
    "smollm-360m-fused": partial(_SMOLLM_360M, fused=True),
    "whisper-tiny-encoder": whisper_encoder,
    "whisper-tiny-decoder": whisper_decoder,
    "moonshine-tiny-encoder": moonshine_encoder,
}
"""Transformers of the sizes that edge devices run, written out by operators or fused."""
