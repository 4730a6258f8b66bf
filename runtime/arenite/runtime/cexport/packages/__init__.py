"""The files by which systems of packages build an export: those under `files/`, with its names.

A file there is a file of every export, at the same path. Another system is another file.
"""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from typing import Final

from arenite.runtime.cexport.base.layout import Component
from arenite.runtime.cexport.base.options import Extension

_WORDS: Final = re.compile(r"modelname|MODELNAME|@(?:regions|sections)@\n|@\w+@")
"""What stands for the name of the model, as C has it, and for what depends on the export."""


def files(component: Component, extension: Extension | None, version: str) -> dict[str, str]:
    """Return the files that build an export, and an application for each system.

    Args:
        component: What is exported.
        extension: Instructions of the processor for CMSIS-NN; None without CMSIS-NN.
        version: Version of the exporter.
    """
    words = {
        "modelname": component.name, "MODELNAME": component.macro, "@version@": version,
        **_regions(component), **_cmsis_nn(component.name, extension),
    }  # fmt: skip

    def filled(text: str) -> str:
        return _WORDS.sub(lambda found: words[found[0]], text)

    return {
        filled(path): filled(text)
        for path, text in _templates(resources(__name__).joinpath("files"))
    }


def _templates(folder: Traversable, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every file."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _templates(each, f"{path}{each.name}/")
        else:
            yield f"{path}{each.name}", each.read_text(encoding="utf-8")


def _regions(component: Component) -> Mapping[str, str]:
    """Return what the linker script says of several memories: all are RAM, until you say where."""
    regions = [each.name.upper() for each in component.memories if each.region]
    if not regions:
        return {"@regions@\n": "", "@sections@\n": ""}
    return {
        "@regions@\n": "".join(f'REGION_ALIAS("{each}", RAM);\n' for each in regions),
        "@sections@\n": f"  INCLUDE ../../{component.name}_memories.ld\n",
    }


def _cmsis_nn(name: str, extension: Extension | None) -> Mapping[str, str]:
    """Return what Makefile and CMakeLists.txt say of CMSIS-NN: nothing without it."""
    if extension is None:
        return dict.fromkeys(("@where@", "@include@", "@library@", "@link@"), "")
    where = f"""
# Where CMSIS-NN is, 7.0.0 or later, and its library for the same processor ({extension}).
CMSIS_NN ?= ../CMSIS-NN
CMSIS_NN_LIBRARY ?= $(CMSIS_NN)/build/libcmsis-nn.a
"""
    return {
        "@where@": where,
        "@include@": " -I$(CMSIS_NN)/Include",
        "@library@": " $(CMSIS_NN_LIBRARY)",
        "@link@": f"target_link_libraries(${{{name}_target}} PUBLIC cmsis-nn)\n",
    }
