"""What the papers of the policies claim, each for networks, batches and machines of its own."""

from collections.abc import Mapping

CLAIMS: Mapping[str, str] = {
    "vdnn-all": "-89 % (AlexNet) to -95 % (GoogLeNet) of average memory; MICRO 2016",
    "vdnn-dynamic": "VGG-16 at batch 256, 28 GB, on 12 GB with 18 % loss; MICRO 2016",
    "tflms": "batches 4.7 times as large (ResNet-50), 2 times (3DUNet); TFLMS",
    "modnn": "50 times less memory at +8 % time; DATE 2018",
    "layrub": "-58.2 % memory at +24.1 % time on average; TACO 2018",
    "superneurons-speed": "3.24 times as deep as other frameworks; PPoPP 2018",
    "superneurons-memory": "3.24 times as deep as other frameworks; PPoPP 2018",
    "capuchin": "-85 % memory at most; ASPLOS 2020",
    "sqrt": "48 GB to 7 GB at +30 % time (1000-layer ResNet); arXiv 1604.06174",
    "chen-greedy": "48 GB to 7 GB at +30 % time (1000-layer ResNet); arXiv 1604.06174",
    "gruslys": "-95 % memory at +33 % time (1000 steps of an RNN); NIPS 2016",
    "kusumoto": "-36 to -81 % of the peak; NeurIPS 2019",
    "checkmate": "5.1 times as large inputs at most; MLSys 2020",
    "gist-fp16": "1.8 times less memory on average at +4 % time; ISCA 2018",
    "cdma": "2.6 times fewer bytes on average, 13.8 at most; HPCA 2018",
}
"""By policy; where nothing stands, no figure is known."""
