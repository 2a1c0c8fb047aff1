# The command. Programs see doppel.h and programs/common alone.
file(GLOB common_sources CONFIGURE_DEPENDS programs/common/*.c)
file(GLOB command_sources CONFIGURE_DEPENDS programs/doppel/*.c)
include(cmake/server.cmake)
include(cmake/stream.cmake)
if(command_sources)
  add_executable(doppel ${command_sources})
  target_link_libraries(doppel PRIVATE doppel_server doppel_stream)
endif()

# Benchmarks, built by the target bench: bench/bench_NAME.c is a program, the other bench/*.c are parts of each of them.
file(GLOB bench_programs CONFIGURE_DEPENDS bench/bench_*.c)
file(GLOB bench_parts CONFIGURE_DEPENDS bench/*.c)
list(FILTER bench_parts EXCLUDE REGEX "/bench_[^/]*$")
add_custom_target(bench)
foreach(source ${bench_programs})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source} ${bench_parts})
  target_include_directories(${name} PRIVATE lib)
  target_link_libraries(${name} PRIVATE doppel_static)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(bench ${name})
endforeach()

# What `make` builds, without the tests.
add_custom_target(product DEPENDS doppel_static doppel_shared)
if(TARGET doppel)
  add_dependencies(product doppel)
endif()
