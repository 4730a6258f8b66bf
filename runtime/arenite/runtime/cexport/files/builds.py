"""A Makefile and a CMakeLists.txt."""


def files(name: str) -> dict[str, str]:
    """Return both; flags are the user's to choose."""
    macro = name.upper()
    makefile = f"""# Builds {name} as a library, and `make check` runs its test.
CFLAGS ?= -Os -std=c99 -Wall -Wextra
DIRECTORY := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
DEFINES := -D{macro}_WEIGHTS_FILE='"$(DIRECTORY){name}_weights.bin"'
OBJECTS := {name}.o {name}_weights.o

lib{name}.a: $(OBJECTS)
	$(AR) rcs $@ $(OBJECTS)

%.o: $(DIRECTORY)%.c $(DIRECTORY){name}.h
	$(CC) $(CFLAGS) -ffp-contract=off $(DEFINES) -I$(DIRECTORY) -c -o $@ $<

{name}_test: {name}_test.o lib{name}.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ {name}_test.o lib{name}.a -lm

check: {name}_test
	./{name}_test

clean:
	$(RM) {name}_test {name}_test.o lib{name}.a $(OBJECTS)

.PHONY: check clean
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
"""
    return {"Makefile": makefile, "CMakeLists.txt": cmake}
