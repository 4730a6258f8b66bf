"""Makefile, CMakeLists.txt, and the manifests of Arduino, ESP-IDF and Zephyr."""

from arenite.runtime.cexport.base.layout import Component
from arenite.runtime.cexport.base.options import Extension


def files(component: Component, extension: Extension | None, version: str) -> dict[str, str]:
    """Return the files that build an export.

    Args:
        component: What is exported.
        extension: Instructions of the processor for CMSIS-NN; None without CMSIS-NN.
        version: Version of the exporter.
    """
    return {**_builds(component.name, extension), **_manifests(component, version)}


def _builds(name: str, extension: Extension | None) -> dict[str, str]:
    """Return a Makefile and a CMakeLists.txt; flags are the user's to choose."""
    macro = name.upper()
    where, include, library, link = "", "", "", ""
    if extension is not None:
        where = f"""
# Where CMSIS-NN is, 7.0.0 or later, and its library for the same processor ({extension}).
CMSIS_NN ?= ../CMSIS-NN
CMSIS_NN_LIBRARY ?= $(CMSIS_NN)/build/libcmsis-nn.a
"""
        include, library = " -I$(CMSIS_NN)/Include", " $(CMSIS_NN_LIBRARY)"
        link = f"target_link_libraries(${{{name}_target}} PUBLIC cmsis-nn)\n"
    makefile = f"""# Builds {name}; `make check` runs its test, by RUNNER if it is set.
CFLAGS ?= -Os -std=c99 -Wall -Wextra
DIRECTORY := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
DEFINES := -D{macro}_WEIGHTS_FILE='"$(DIRECTORY){name}_weights.bin"'
{where}
# Every compiler has a folder of objects: its target, and a checksum of how it is called.
HOST := $(shell cc -dumpmachine 2>/dev/null || uname -m)
TARGET := $(or $(shell $(CC) $(CFLAGS) -dumpmachine 2>/dev/null),$(HOST))
BUILD := objects/$(TARGET)-$(firstword $(shell echo "$(CC) $(AR) $(CFLAGS)" | cksum))
OBJECTS := $(BUILD)/{name}.o $(BUILD)/{name}_weights.o

PROCESSOR := $(firstword $(subst -, ,$(TARGET)))
ifneq ($(PROCESSOR),$(firstword $(subst -, ,$(HOST))))
OTHER := yes
ifneq ($(findstring linux,$(TARGET)),)
QEMU := qemu-$(PROCESSOR) qemu-$(PROCESSOR)-static
RUNNER ?= $(firstword $(foreach each,$(QEMU),$(shell command -v $(each) 2>/dev/null)))
STATIC := -static
endif
endif

lib{name}.a: $(BUILD)/lib{name}.a FORCE
	@cmp -s $< $@ || cp $< $@

$(BUILD)/lib{name}.a: $(OBJECTS)
	$(AR) rcs $@ $(OBJECTS)

$(BUILD)/%.o: $(DIRECTORY)%.c $(DIRECTORY){name}.h
	@mkdir -p $(BUILD)
	$(CC) $(CFLAGS) -ffp-contract=off $(DEFINES) -I$(DIRECTORY){include} -c -o $@ $<

$(BUILD)/{name}_test: $(BUILD)/{name}_test.o $(BUILD)/lib{name}.a
	$(CC) $(CFLAGS) $(STATIC) $(LDFLAGS) -o $@ $^{library} -lm

ifeq ($(OTHER)$(RUNNER),yes)
check:
	@echo "the test is for $(TARGET), this machine is $(HOST): pass RUNNER, an emulator" >&2; false
else
check: $(BUILD)/{name}_test
	$(RUNNER) ./$(BUILD)/{name}_test
endif

clean:
	$(RM) -r objects lib{name}.a

.PHONY: check clean FORCE
"""
    cmake = f"""# With ESP-IDF a component; else a library, {name}, that other targets link.
if(ESP_PLATFORM)
  idf_component_register(SRCS {name}.c {name}_weights.c INCLUDE_DIRS .)
  set({name}_target ${{COMPONENT_LIB}})
else()
  cmake_minimum_required(VERSION 3.13)
  project({name} C)
  add_library({name} STATIC {name}.c {name}_weights.c)
  target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
  set({name}_target {name})
  if(CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR AND NOT CMAKE_CROSSCOMPILING)
    enable_testing()
    add_executable({name}_test {name}_test.c)
    target_link_libraries({name}_test PRIVATE {name} m)
    add_test(NAME {name} COMMAND {name}_test)
  endif()
endif()
set_source_files_properties({name}_weights.c PROPERTIES COMPILE_DEFINITIONS
  "{macro}_WEIGHTS_FILE=\\"${{CMAKE_CURRENT_SOURCE_DIR}}/{name}_weights.bin\\"")
target_compile_options(${{{name}_target}} PRIVATE -ffp-contract=off)
{link}"""
    return {"Makefile": makefile, "CMakeLists.txt": cmake}


def _manifests(component: Component, version: str) -> dict[str, str]:
    """Return the manifests of Arduino, ESP-IDF and Zephyr."""
    name = component.name
    runs = " and ".join(f"{each.name}_run" for each in component.models)
    arduino = f"""name={name}
version={version}
author=Arenite
maintainer=Arenite
sentence=The network {name} as C source.
paragraph=Call {runs} with an arena of {name.upper()}_ARENA_BYTES bytes.
category=Data Processing
url=
architectures=*
includes={name}.h
"""
    esp = f"""version: "{version}"
description: The network {name} as C source
"""
    zephyr_module = f"""name: {name}
build:
  cmake: zephyr
  kconfig: zephyr/Kconfig
"""
    zephyr_cmake = f"""if(CONFIG_{name.upper()})
  zephyr_library_named({name})
  zephyr_library_sources(../{name}.c ../{name}_weights.c)
  zephyr_library_compile_options(-ffp-contract=off)
  zephyr_library_compile_definitions(
    {name.upper()}_WEIGHTS_FILE="${{CMAKE_CURRENT_LIST_DIR}}/../{name}_weights.bin")
  zephyr_include_directories(..)
endif()
"""
    zephyr_kconfig = f"""config {name.upper()}
	bool "The network {name}"
	default y
"""
    return {
        "library.properties": arduino,
        "idf_component.yml": esp,
        "zephyr/module.yml": zephyr_module,
        "zephyr/CMakeLists.txt": zephyr_cmake,
        "zephyr/Kconfig": zephyr_kconfig,
    }
