"""The boards: processors, memories and the tools that each needs."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "c"


@dataclass(frozen=True, slots=True)
class Board:
    """A board that QEMU emulates.

    Attributes:
        name: Name of the machine in QEMU, and of its linker script, unless `machine` is.
        processor: Its name, for people.
        flags: Compiler options that choose the processor.
        own_flags: Compiler options for the board's own code alone.
        libraries: Options of the linker that choose the compiler's libraries.
        library: Source files of what they lack, which count as theirs.
        tools: Prefix of the compiler's programs.
        emulator: The program that emulates it.
        options: Further options of the emulator.
        clock_hz: Frequency of the counter; the emulator lets an instruction pass in 1 ns.
        ram_bytes: Size of the memory that arena, data and stack share.
        packages: Debian packages it takes.
        machine: Name of the machine in QEMU, where several processors share it.
        compiler: Program and options that compile a model, where those of `tools` do not.
    """

    name: str
    processor: str
    flags: tuple[str, ...]
    clock_hz: int
    ram_bytes: int
    own_flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ("-lm",)
    library: tuple[Path, ...] = ()
    tools: str = "arm-none-eabi-"
    emulator: str = "qemu-system-arm"
    options: tuple[str, ...] = ()
    packages: tuple[str, ...] = (
        "gcc-arm-none-eabi", "libnewlib-arm-none-eabi", "qemu-system-arm",
    )  # fmt: skip
    machine: str = ""
    compiler: tuple[str, ...] = ()

    @property
    def emulated(self) -> str:
        """Name of the machine in QEMU, and of its linker script."""
        return self.machine or self.name

    @property
    def architecture(self) -> str:
        """Return the name that its start-up file has behind `start_`."""
        return {"arm": "cortex_m", "riscv64": "riscv"}.get(self.tools.split("-")[0], "xtensa")

    def missing(self) -> str:
        """Return the packages to install, or nothing."""
        programs = (self.emulator, f"{self.tools}gcc", f"{self.tools}size", *self.compiler[:1])
        absent = [each for each in programs if shutil.which(each) is None]
        return f"apt-get install {' '.join(self.packages)}" if absent else ""


_FREESTANDING: Final = SOURCES / "freestanding"
_THUMB: Final = ("-mthumb",)
_HARD: Final = ("-mthumb", "-mfloat-abi=hard")
_RISCV: Final = Board(
    "virt", "RV32IMAC", ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"),
    1_000_000_000, 4 << 20,
    own_flags=("-march=rv32imac_zicsr",),  # for the counter
    tools="riscv64-unknown-elf-",
    emulator="qemu-system-riscv32",
    options=("-cpu", "sifive-e31", "-bios", "none"),
    packages=("gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf", "qemu-system-misc"),
)  # fmt: skip
BOARDS: Final = (
    Board("microbit", "Cortex-M0", (*_THUMB, "-mcpu=cortex-m0"), 16_000_000, 16 << 10),
    Board("lm3s6965evb", "Cortex-M3", (*_THUMB, "-mcpu=cortex-m3"), 12_500_000, 64 << 10),
    Board(
        "mps2-an386", "Cortex-M4", (*_HARD, "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"),
        25_000_000, 4 << 20,
    ),
    Board(
        "mps2-an500", "Cortex-M7", (*_HARD, "-mcpu=cortex-m7", "-mfpu=fpv5-d16"),
        25_000_000, 4 << 20,
    ),
    Board("mps3-an547", "Cortex-M55", (*_HARD, "-mcpu=cortex-m55"), 32_000_000, 4 << 20),
    _RISCV,
    replace(
        _RISCV, name="virt-rvv", processor="RV32IMAC_Zve32x", machine="virt",
        options=("-cpu", "rv32,v=true,vlen=128,vext_spec=v1.0", "-bios", "none"),
        # Debian's GCC for RISC-V has no intrinsics of vectors.
        compiler=(
            "clang-19", "--target=riscv32-unknown-elf", "-march=rv32imac_zve32x", "-mabi=ilp32",
            "-isystem", "/usr/lib/picolibc/riscv64-unknown-elf/include",
        ),
        packages=(*_RISCV.packages, "clang-19"),
    ),
    Board(
        "sim", "Xtensa-LX106", ("-isystem", str(_FREESTANDING)), 40_000_000, 4 << 20,
        libraries=("-nodefaultlibs", "-lgcc"),  # there is no other
        library=(_FREESTANDING / "string.c", _FREESTANDING / "arithmetic.c"),
        tools="xtensa-lx106-elf-",
        emulator="qemu-system-xtensa",
        options=("-cpu", "lx106"),
        packages=("gcc-xtensa-lx106", "qemu-system-misc"),
    ),
)  # fmt: skip


LARGE_M3: Final = Board(
    "mps2-an385", "Cortex-M3", (*_THUMB, "-mcpu=cortex-m3"), 25_000_000, 4 << 20
)
"""A Cortex-M3 with room for models that the one above has none for."""


def board(name: str) -> Board:
    """Return the board of this name."""
    return next(each for each in BOARDS if each.name == name)
