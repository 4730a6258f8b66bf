"""What package managers of boards want: Arduino, ESP-IDF and Zephyr."""

from arenite.runtime.cexport.options import Options


def files(name: str, options: Options) -> dict[str, str]:
    """Return the manifests."""
    version = options.version
    arduino = f"""name={name}
version={version}
author=Arenite
maintainer=Arenite
sentence=The network {name} as C source.
paragraph=Call {name}_run with an arena of {name.upper()}_ARENA_BYTES bytes.
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
