# Stands in for ESP-IDF: reads a project and its components as ESP-IDF does, and builds them for
# this machine.
set(ESP_PLATFORM 1)
set(standin ${CMAKE_CURRENT_LIST_DIR}/../..)

function(idf_build_set_property)
endfunction()

function(idf_component_register)
  cmake_parse_arguments(given "" "" "SRCS;INCLUDE_DIRS;REQUIRES" ${ARGN})
  get_filename_component(name ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_library(${name} STATIC ${given_SRCS})
  target_include_directories(${name} PUBLIC ${given_INCLUDE_DIRS})
  target_include_directories(${name} PRIVATE ${standin}/include)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
  target_link_libraries(${name} PUBLIC ${given_REQUIRES} m)
  set(COMPONENT_LIB ${name} PARENT_SCOPE)
endfunction()

macro(project name)
  _project(${name} C)
  foreach(folder ${EXTRA_COMPONENT_DIRS})
    get_filename_component(folder ${folder} ABSOLUTE)
    add_subdirectory(${folder} ${CMAKE_BINARY_DIR}/component)
  endforeach()
  add_subdirectory(main)
  add_executable(app ${standin}/main.c)
  target_link_libraries(app PRIVATE main)
endmacro()
