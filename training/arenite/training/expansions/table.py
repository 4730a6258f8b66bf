"""All operators that are written as simpler ones where they are differentiated."""

from collections.abc import Mapping
from typing import Final

from arenite.training.expansions import normalising, recurrent
from arenite.training.expansions.call import Expansion

EXPANSIONS: Final[Mapping[str, Expansion]] = {
    "LSTM": recurrent.lstm,
    "GRU": recurrent.gru,
    "RNN": recurrent.rnn,
    "LayerNormalization": normalising.layer_normalization,
    "InstanceNormalization": normalising.instance_normalization,
    "Gelu": normalising.gelu,
}
