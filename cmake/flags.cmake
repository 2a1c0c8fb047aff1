# Language, optimisation, warnings, sanitizers, and where the results go.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(optimise -O3 -g)
if(DOPPEL_SANITIZE)
  set(optimise -O1 -g1) # readable reports, with functions and lines
endif()
string(REPLACE ";" " " optimise "${optimise}")
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "${optimise}")
  set(CMAKE_${language}_FLAGS_DEBUG "-O0 -g3")
  set(CMAKE_${language}_VISIBILITY_PRESET hidden)
endforeach()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wshadow -Wconversion $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
                    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
# A row of a table of options or commands leaves out what it does not have.
add_compile_options(-Wno-missing-field-initializers)
if(DOPPEL_WERROR)
  add_compile_options(-Werror)
endif()

if(DOPPEL_SANITIZE)
  # -fno-sanitize-recover: a finding of the undefined-behaviour sanitizer ends the test, as the others do.
  add_compile_options(-fsanitize=${DOPPEL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DOPPEL_SANITIZE})
endif()

# gold links the many test programs in a quarter of the time; what users get is linked as their system does. It does not
# understand the lists of symbols that clang's sanitizers bring.
include(CheckLinkerFlag)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  check_linker_flag(C -fuse-ld=gold has_gold)
endif()
set(fast_linker $<$<BOOL:${has_gold}>:-fuse-ld=gold>)
if(DOPPEL_SANITIZE)
  add_link_options(${fast_linker})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
