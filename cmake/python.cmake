# The module doppel._doppel of the Python binding: bindings/python/src, with the library and the command linked inside.
# DOPPEL_PYTHON is the folder of the binding. `make wheel` and pip build it by bindings/python/CMakeLists.txt; in a build
# of this folder, -DDOPPEL_PYTHON=bindings/python makes python/doppel in the build folder, for PYTHONPATH.
get_filename_component(python_folder ${DOPPEL_PYTHON} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)

# One build serves every Python from 3.10 on, by the limited API; free-threaded Python has none.
execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))"
                OUTPUT_VARIABLE free_threaded OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

file(GLOB python_sources CONFIGURE_DEPENDS ${python_folder}/src/*.c)
add_library(doppel_python MODULE EXCLUDE_FROM_ALL ${python_sources} programs/stream/absent.c)
target_link_libraries(doppel_python PRIVATE Python::Module doppel_command)
set(exports ${PROJECT_SOURCE_DIR}/cmake/python_exports.map)
target_link_options(doppel_python PRIVATE -Wl,--version-script=${exports})
set_target_properties(doppel_python PROPERTIES PREFIX "" OUTPUT_NAME _doppel LINKER_LANGUAGE CXX LINK_DEPENDS ${exports}
                                               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/doppel)
if(free_threaded)
  set_target_properties(doppel_python PROPERTIES SUFFIX .${Python_SOABI}.so)
else()
  target_compile_definitions(doppel_python PRIVATE Py_LIMITED_API=0x030A0000)
  set_target_properties(doppel_python PROPERTIES SUFFIX .abi3.so)
endif()
install(TARGETS doppel_python DESTINATION doppel COMPONENT python EXCLUDE_FROM_ALL)

file(GLOB python_files CONFIGURE_DEPENDS ${python_folder}/doppel/*)
list(FILTER python_files EXCLUDE REGEX "/__pycache__$")
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/doppel)
foreach(file ${python_files})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${PROJECT_BINARY_DIR}/python/doppel/${name} SYMBOLIC)
endforeach()
