# libdoppel.a and libdoppel.so, from the same objects. Only what doppel.h marks DOPPEL_API is visible in the .so; the
# unit tests link the .a, where the library's own dp_ symbols can be reached.
file(GLOB library_sources CONFIGURE_DEPENDS lib/*/*.c lib/*/*.cpp)
list(FILTER library_sources EXCLUDE REGEX "/generate_[^/]*$") # programs that run during the build
if(NOT with_redis)
  list(FILTER library_sources EXCLUDE REGEX "/lib/known/redis[^/]*$")
endif()

add_library(doppel_objects OBJECT ${library_sources})
set_target_properties(doppel_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(doppel_objects PUBLIC include PRIVATE lib ${PROJECT_BINARY_DIR}/generated)
if(with_redis)
  target_compile_definitions(doppel_objects PRIVATE DOPPEL_WITH_REDIS)
endif()
target_link_libraries(doppel_objects PUBLIC PkgConfig::dependencies BZip2::BZip2 ${redis_target} Threads::Threads m)

foreach(kind STATIC SHARED)
  string(TOLOWER doppel_${kind} target)
  add_library(${target} ${kind} $<TARGET_OBJECTS:doppel_objects>)
  target_include_directories(${target} PUBLIC include)
  target_link_libraries(${target} PUBLIC PkgConfig::dependencies BZip2::BZip2 ${redis_target} Threads::Threads m)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME doppel LINKER_LANGUAGE CXX)
endforeach()
set_target_properties(doppel_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_options(doppel_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
set_target_properties(doppel_shared PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)

# Tables made at build time: lib/FOLDER/generate_NAME.c, with NAME.c beside it and lib/base, prints
# generated/NAME_table.h. A cross build runs the program through CMAKE_CROSSCOMPILING_EMULATOR.
file(GLOB base_sources CONFIGURE_DEPENDS lib/base/*.c)
file(GLOB generators CONFIGURE_DEPENDS lib/*/generate_*.c)
foreach(source ${generators})
  get_filename_component(program ${source} NAME_WE)
  string(REGEX REPLACE "^generate_" "" name ${program})
  set(table ${PROJECT_BINARY_DIR}/generated/${name}_table.h)
  string(REPLACE generate_${name}.c ${name}.c beside ${source})
  add_executable(${program} ${source} ${beside} ${base_sources})
  target_include_directories(${program} PRIVATE include lib)
  target_link_libraries(${program} PRIVATE PkgConfig::dependencies)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  add_custom_command(OUTPUT ${table} COMMAND ${program} > ${table} DEPENDS ${program} VERBATIM)
  target_sources(doppel_objects PRIVATE ${table})
endforeach()

# The functions that run inside Redis, lib/known/*.lua, as one text.
if(with_redis)
  file(GLOB redis_functions CONFIGURE_DEPENDS lib/known/*.lua)
  set(redis_library ${PROJECT_BINARY_DIR}/generated/redis_library.c)
  add_custom_command(OUTPUT ${redis_library}
                     COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/lib/known -DTO=${redis_library}
                             -P ${PROJECT_SOURCE_DIR}/cmake/redis_library.cmake
                     DEPENDS ${redis_functions} ${PROJECT_SOURCE_DIR}/cmake/redis_library.cmake VERBATIM)
  target_sources(doppel_objects PRIVATE ${redis_library})
endif()
