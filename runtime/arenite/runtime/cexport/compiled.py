"""A model as steps for C kernels, before and after its storage is shared."""

from dataclasses import dataclass, replace

from arenite.planner import AliasKind, Derivation, Program, Rules, Source
from arenite.runtime.cexport.base.options import Rounding


@dataclass(frozen=True, slots=True)
class CompiledForC:
    """A model ready to be placed and written.

    Attributes:
        source: The program in its final order, its storage shared, and its records.
        shifted: Tensors of bytes without a sign in the model, here stored less 128.
        alignment: Bytes of every offset.
        rounding: How the model's own runtime rounds products of integers.
    """

    source: Source
    shifted: frozenset[str]
    alignment: int
    rounding: Rounding = "double"

    @property
    def program(self) -> Program:
        """The program, in the order it runs."""
        assert self.source.program is not None
        return self.source.program


@dataclass(frozen=True, slots=True)
class LoweredForC:
    """A model as steps for C kernels, none of its storage shared yet.

    Attributes:
        name: File name, without folders.
        digest: SHA-256 of its bytes, hexadecimal.
        program: The steps, in the order of the file.
        shifted: Tensors of bytes without a sign in the model, here stored less 128.
        rules: How memory is counted.
        rounding: How the model's own runtime rounds products of integers.
    """

    name: str
    digest: str
    program: Program
    shifted: frozenset[str]
    rules: Rules
    rounding: Rounding = "double"

    @property
    def rules_in_bands(self) -> Rules:
        """How memory is counted where rows come and go: without results over operands."""
        aliases = tuple(kind for kind in self.rules.aliases if kind is not AliasKind.OVERLAP)
        return replace(self.rules, aliases=aliases)

    def compiled(self, derivation: Derivation) -> CompiledForC:
        """Return the model as derived from this program, or from a rewrite of it."""
        source = Source.derived(self.name, self.digest, derivation)
        return CompiledForC(source, self.shifted, self.rules.alignment, self.rounding)
