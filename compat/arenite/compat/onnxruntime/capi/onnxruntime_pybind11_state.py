"""The exceptions of ONNX Runtime, with its numbers and wording."""

from typing import ClassVar


class _Status(Exception):  # noqa: N818  # as there, without `Error`
    """A failure that ONNX Runtime states with a number."""

    number: ClassVar[int]
    code: ClassVar[str]

    def __init__(self, reason: str) -> None:
        super().__init__(f"[ONNXRuntimeError] : {self.number} : {self.code} : {reason}")


class Fail(_Status):
    """A run failed, or a model cannot be loaded."""

    number, code = 1, "FAIL"


class InvalidArgument(_Status):
    """A name, a type or a shape is not the model's."""

    number, code = 2, "INVALID_ARGUMENT"


class NoSuchFile(_Status):
    """There is no such model file."""

    number, code = 3, "NO_SUCHFILE"


class NoModel(_Status):
    """Nothing was loaded."""

    number, code = 4, "NO_MODEL"


class EngineError(_Status):
    """Never raised here; programs name it."""

    number, code = 5, "ENGINE_ERROR"


class RuntimeException(_Status):
    """There is no memory, or a program is damaged."""

    number, code = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(_Status):
    """The file is no ONNX model."""

    number, code = 7, "INVALID_PROTOBUF"


class ModelLoaded(_Status):
    """Never raised here; programs name it."""

    number, code = 8, "MODEL_LOADED"


class NotImplemented(_Status):  # noqa: A001  # its name there
    """Arenite does not run the model; the reason names what it lacks."""

    number, code = 9, "NOT_IMPLEMENTED"


class InvalidGraph(_Status):
    """The graph of the model is not valid."""

    number, code = 10, "INVALID_GRAPH"


class EPFail(_Status):
    """Never raised here; programs name it."""

    number, code = 11, "EP_FAIL"
