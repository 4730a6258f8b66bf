"""A TFLite file with a new front: changes are put before the old bytes, which are kept.

FlatBuffer references only point forwards, relative to their own position. So a file is changed
by putting a new root before it, whose references point into the old bytes wherever nothing
changed::

    | new model, its vectors, the plan | the old file, padded |
            `----------------------------^ operator codes, subgraphs, weights ...

Nothing is unpacked, so nothing that this version of the schema does not know is lost
below the root. The old root and its lists of references stay behind unused: 4 B for each
buffer of weights.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from arenite.planner.errors import ModelFormatError, UnsupportedModelError, needing

PLAN_NAME: Final = b"OfflineMemoryAllocation"
"""Name of the metadata entry in which TensorFlow Lite Micro looks for a plan."""

_FORMAT_VERSION: Final = 1
_ALIGNMENT: Final = 64
"""FlatBuffers of TFLite files need at most 16; weights gain from a cache line."""

# Fields by number, as the schema declares them.
_MODEL_FIELDS: Final = 8
_VERSION, _CODES, _SUBGRAPHS, _DESCRIPTION, _BUFFERS, _METADATA_BUFFER, _METADATA, _SIGNATURES = (
    range(_MODEL_FIELDS)
)
_SUBGRAPH_FIELDS: Final = 5
_TENSORS, _INPUTS, _OUTPUTS, _OPERATORS, _NAME = range(_SUBGRAPH_FIELDS)
_METADATA_NAME, _METADATA_INDEX = range(2)
_BUFFER_DATA, _BUFFER_OFFSET = range(2)
_OPERATOR_CUSTOM_OFFSET: Final = 9
_TENSOR_FIELDS: Final = 4
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_BUFFER, _TENSOR_NAME = range(_TENSOR_FIELDS)
_TENSOR_IS_VARIABLE: Final = 5
_INT8: Final = 9

_DAMAGE = (struct.error, IndexError, OverflowError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class _Subgraph:
    """Places of a subgraph, its tensors and operators, and the number of tensors before it."""

    place: int
    tensors: Sequence[int]
    operators: Sequence[int]
    first_tensor: int


class ModelFile:
    """The bytes of a TFLite file, and new files made of them.

    Its tensors, constants included, are numbered through all subgraphs, in their order: a plan
    has one offset for each.

    Attributes:
        num_tensors: Number of tensors of all subgraphs.
        body: The file's bytes as they follow a new front.

    Raises:
        UnsupportedModelError: A plan would be read wrongly, or bytes lie behind the FlatBuffer.
        ModelFormatError: The file is damaged.
        MissingDependencyError: The package `flatbuffers` is absent.
    """

    def __init__(self, data: bytes) -> None:
        with needing("flatbuffers", "tflm", "writing a TFLite model"):
            import flatbuffers
        self._flatbuffers = flatbuffers
        self.body = data + bytes(-len(data) % _ALIGNMENT)
        try:
            (self._root,) = struct.unpack_from("<I", data)
            self._subgraphs: list[_Subgraph] = []
            self.num_tensors = 0
            for place in self._entries(self._root, _SUBGRAPHS):
                tensors = self._entries(place, _TENSORS)
                operators = self._entries(place, _OPERATORS)
                self._subgraphs.append(_Subgraph(place, tensors, operators, self.num_tensors))
                self.num_tensors += len(tensors)
            self._buffers = self._entries(self._root, _BUFFERS)
            self._other_metadata = [
                entry
                for entry in self._entries(self._root, _METADATA)
                if self._text(entry, _METADATA_NAME) != PLAN_NAME
            ]
            self._version = self._number(self._root, _VERSION)
            self._fields = {
                field: self._field(self._root, field) for field in range(_CODES, _MODEL_FIELDS)
            }
            self._refuse_lasting_tensors_of_inner_subgraphs()
            self._refuse_what_must_not_move()
        except _DAMAGE as error:
            raise ModelFormatError("an offset leads outside the file") from error

    def number(self, subgraph: int, index: int) -> int:
        return self._subgraphs[subgraph].first_tensor + index

    def with_plan(self, offsets: Sequence[int], reserved: Sequence[range] = ()) -> bytes:
        """Return the file with this plan; one that it carried is replaced.

        Args:
            offsets: For each tensor the first byte in the arena's head, or -1 to leave it
                to the interpreter.
            reserved: Bytes that the interpreter must keep free throughout. For each the model
                has one input and one output more, the same tensor, behind its own.
        """
        if len(offsets) != self.num_tensors:
            raise ValueError(f"{len(offsets)} offsets for {self.num_tensors} tensors")
        front = self._builder()
        subgraphs = [self._moved(each.place) for each in self._subgraphs]
        if reserved:
            subgraphs[0] = self._reserving(front, [len(each) for each in reserved])
            own = len(self._subgraphs[0].tensors)
            offsets = [*offsets[:own], *(each.start for each in reserved), *offsets[own:]]
        return self._fronted(front, offsets, subgraphs)

    def of_operator(
        self,
        place: tuple[int, int],
        inputs: Sequence[int],
        outputs: Sequence[int],
        filler_bytes: int,
        offsets: Sequence[int],
    ) -> bytes:
        """Return the front of a model that has one operator of this one's, and a filler.

        The filler is one tensor more, live throughout. The front and `body` together are
        the file.

        Args:
            place: The operator: number of its subgraph, and its index there.
            inputs: Tensors it reads, by index in the subgraph: the model's inputs.
            outputs: Tensors it writes, by index in the subgraph: the model's outputs.
            filler_bytes: Size of the filler.
            offsets: For each tensor of the subgraph, the filler last.
        """
        subgraph = self._subgraphs[place[0]]
        front = self._builder()
        filler = self._filler(front, filler_bytes, "filler")
        tensors = self._references(front, [*map(self._moved, subgraph.tensors), filler])
        operators = self._references(front, [self._moved(subgraph.operators[place[1]])])
        filler_index = len(subgraph.tensors)
        ends = [self._integers(front, [*each, filler_index]) for each in (inputs, outputs)]
        front.StartObject(_SUBGRAPH_FIELDS)
        for field, offset in zip(
            (_TENSORS, _INPUTS, _OUTPUTS, _OPERATORS), (tensors, *ends, operators), strict=True
        ):
            front.PrependUOffsetTRelativeSlot(field, offset, 0)
        data = self._fronted(front, offsets, [front.EndObject()])
        return data[: -len(self.body)]

    def num_tensors_of(self, subgraph: int) -> int:
        return len(self._subgraphs[subgraph].tensors)

    def _fronted(self, front: Any, offsets: Sequence[int], subgraphs: Sequence[int]) -> bytes:
        """Return the file with a new root.

        Args:
            front: Bytes in front of the old file so far.
            offsets: The plan.
            subgraphs: The subgraphs, as the front knows them.
        """
        numbers = [_FORMAT_VERSION, len(subgraphs), len(offsets), *offsets]
        plan = self._integers(front, numbers, as_bytes=True)
        front.StartObject(1)
        front.PrependUOffsetTRelativeSlot(_BUFFER_DATA, plan, 0)
        buffers = [*map(self._moved, self._buffers), front.EndObject()]
        new = {
            _SUBGRAPHS: self._references(front, subgraphs),
            _METADATA: self._references(front, self._new_metadata(front, len(self._buffers))),
            _BUFFERS: self._references(front, buffers),
        }
        front.StartObject(_MODEL_FIELDS)
        front.PrependUint32Slot(_VERSION, self._version, 0)
        for field, old in self._fields.items():
            if field in new:
                front.PrependUOffsetTRelativeSlot(field, new[field], 0)
            elif old is not None:
                front.PrependUOffsetTRelativeSlot(field, self._moved(old), 0)
        front.Finish(front.EndObject(), file_identifier=b"TFL3")
        return bytes(front.Output())

    def _new_metadata(self, front: Any, buffer_index: int) -> list[int]:
        """Return the entries of the metadata: the old ones but for the plan, and the new."""
        name = front.CreateString(PLAN_NAME)
        front.StartObject(2)
        front.PrependUOffsetTRelativeSlot(_METADATA_NAME, name, 0)
        front.PrependUint32Slot(_METADATA_INDEX, buffer_index, 0)
        return [*map(self._moved, self._other_metadata), front.EndObject()]

    def _builder(self) -> Any:
        """Return a builder that holds the old file."""
        builder = self._flatbuffers.Builder(0)
        builder.Bytes = bytearray(self.body)
        builder.minalign = _ALIGNMENT
        return builder

    def _reserving(self, front: Any, sizes: Sequence[int]) -> int:
        """Return the first subgraph with tensors more that live throughout, of these bytes."""
        first = self._subgraphs[0]
        fillers = [self._filler(front, size, "reserved") for size in sizes]
        tensors = self._references(front, [*map(self._moved, first.tensors), *fillers])
        added = range(len(first.tensors), len(first.tensors) + len(sizes))
        fields = {
            _TENSORS: tensors,
            **{
                field: self._integers(front, [*self._numbers(first.place, field), *added])
                for field in (_INPUTS, _OUTPUTS)
            },
        }
        for field in (_OPERATORS, _NAME):
            place = self._field(first.place, field)
            if place is not None:
                fields[field] = self._moved(place)
        front.StartObject(_SUBGRAPH_FIELDS)
        for field, offset in fields.items():
            front.PrependUOffsetTRelativeSlot(field, offset, 0)
        return int(front.EndObject())

    def _filler(self, front: Any, num_bytes: int, label: str) -> int:
        shape = self._integers(front, [num_bytes])
        name = front.CreateString(label)
        front.StartObject(_TENSOR_FIELDS)
        front.PrependUOffsetTRelativeSlot(_TENSOR_SHAPE, shape, 0)
        front.PrependUint8Slot(_TENSOR_TYPE, _INT8, 0)
        front.PrependUOffsetTRelativeSlot(_TENSOR_NAME, name, 0)
        return int(front.EndObject())

    def _moved(self, position: int) -> int:
        """Return how a builder that holds the old file knows a place in it: from the end."""
        return len(self.body) - position

    @staticmethod
    def _references(front: Any, offsets: Sequence[int]) -> int:
        front.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            front.PrependUOffsetTRelative(offset)
        return int(front.EndVector())

    @staticmethod
    def _integers(front: Any, values: Sequence[int], *, as_bytes: bool = False) -> int:
        """Return a vector of int32, or of the bytes they take."""
        data = struct.pack(f"<{len(values)}i", *values)
        front.StartVector(1, len(data), 16)
        front.head -= len(data)
        front.Bytes[front.head : front.head + len(data)] = data
        if not as_bytes:
            front.vectorNumElems = len(values)
        return int(front.EndVector())

    def _refuse_lasting_tensors_of_inner_subgraphs(self) -> None:
        """Refuse variable tensors that the interpreter would look up as tensors of the first."""
        for number, subgraph in enumerate(self._subgraphs[1:], 1):
            for tensor in subgraph.tensors:
                if self._flag(tensor, _TENSOR_IS_VARIABLE):
                    raise UnsupportedModelError(
                        (self._text(tensor, _TENSOR_NAME) or b"a tensor").decode(errors="replace"),
                        f"it is a variable tensor of subgraph {number}: TensorFlow Lite Micro "
                        "looks the plan of such a tensor up in the wrong place",
                    )

    def _refuse_what_must_not_move(self) -> None:
        """Refuse files with parts at a fixed distance from the first byte."""
        (vtable_bytes,) = struct.unpack_from("<H", self.body, self._vtable(self._root))
        if vtable_bytes > 4 + 2 * _MODEL_FIELDS:
            raise UnsupportedModelError("model", "the root table has unknown fields")
        if any(self._number(each, _BUFFER_OFFSET) > 1 for each in self._buffers) or any(
            self._number(operator, _OPERATOR_CUSTOM_OFFSET) > 1
            for subgraph in self._subgraphs
            for operator in subgraph.operators
        ):
            raise UnsupportedModelError(
                "buffers",
                "weights behind the FlatBuffer are unsupported, as TensorFlow Lite Micro does "
                "not look for them",
            )

    def _vtable(self, table: int) -> int:
        (distance,) = struct.unpack_from("<i", self.body, table)
        return self._inside(table - int(distance))

    def _place(self, table: int, field: int) -> int | None:
        """Return where a field of a table is stored, None if it is left out."""
        vtable = self._vtable(table)
        (vtable_bytes,) = struct.unpack_from("<H", self.body, vtable)
        if 4 + 2 * field >= vtable_bytes:
            return None
        (distance,) = struct.unpack_from("<H", self.body, vtable + 4 + 2 * field)
        return table + int(distance) if distance else None

    def _field(self, table: int, field: int) -> int | None:
        place = self._place(table, field)
        return None if place is None else self._follow(place)

    def _follow(self, place: int) -> int:
        (distance,) = struct.unpack_from("<I", self.body, place)
        return self._inside(place + int(distance))

    def _inside(self, position: int) -> int:
        if not 0 <= position <= len(self.body) - 4:
            raise IndexError(position)
        return position

    def _number(self, table: int, field: int) -> int:
        place = self._place(table, field)
        return 0 if place is None else int(struct.unpack_from("<I", self.body, place)[0])

    def _flag(self, table: int, field: int) -> bool:
        place = self._place(table, field)
        return place is not None and bool(self.body[place])

    def _text(self, table: int, field: int) -> bytes:
        start = self._field(table, field)
        if start is None:
            return b""
        (length,) = struct.unpack_from("<I", self.body, start)
        return self.body[start + 4 : start + 4 + int(length)]

    def _numbers(self, table: int, field: int) -> list[int]:
        """Return a vector of int32."""
        start = self._field(table, field)
        if start is None:
            return []
        (count,) = struct.unpack_from("<I", self.body, start)
        return list(struct.unpack_from(f"<{min(count, len(self.body))}i", self.body, start + 4))

    def _entries(self, table: int, field: int) -> list[int]:
        """Return where the tables of a vector lie."""
        start = self._field(table, field)
        if start is None:
            return []
        (count,) = struct.unpack_from("<I", self.body, start)
        if 4 * int(count) > len(self.body):
            raise IndexError(count)
        return [self._follow(start + 4 + 4 * index) for index in range(int(count))]
