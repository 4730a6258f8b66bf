# Cross compilation for ARM Debian: ARENITE_ARCH is arm64 or armhf, ARENITE_SYSROOT a folder of
# unpacked packages. The C and C++ libraries come with the cross compiler.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ARENITE_ARCH ARENITE_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
if(ARENITE_ARCH STREQUAL arm64)
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
  set(TRIPLET aarch64-linux-gnu)
else()
  set(CMAKE_SYSTEM_PROCESSOR armv7l)
  set(TRIPLET arm-linux-gnueabihf)
endif()
set(CMAKE_C_COMPILER ${TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER ${TRIPLET}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${TRIPLET})

set(CMAKE_FIND_ROOT_PATH ${ARENITE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# Python's headers name those of the architecture from the folder above.
set(CMAKE_CXX_FLAGS_INIT "-idirafter ${ARENITE_SYSROOT}/usr/include")
