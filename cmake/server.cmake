# doppel serve, on by default where its libraries are found: programs/server/*.c, with the files of its console in a
# table. Without them the command says that it was built without.
option(DOPPEL_SERVER "build doppel serve" ON)
pkg_check_modules(server_libraries IMPORTED_TARGET libmicrohttpd inih libseccomp)
file(GLOB server_sources CONFIGURE_DEPENDS programs/server/*.c)
file(GLOB console_files CONFIGURE_DEPENDS programs/server/console/*)

if(DOPPEL_SERVER AND server_libraries_FOUND)
  set(console_table ${PROJECT_BINARY_DIR}/generated/console_table.c)
  add_custom_command(OUTPUT ${console_table}
                     COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/programs/server/console
                             -DTABLE=${console_table} -P ${PROJECT_SOURCE_DIR}/cmake/console.cmake
                     DEPENDS ${console_files} ${PROJECT_SOURCE_DIR}/cmake/console.cmake VERBATIM)
  list(FILTER server_sources EXCLUDE REGEX "/absent.c$")
  add_library(doppel_server STATIC ${server_sources} ${console_table} ${common_sources})
  target_link_libraries(doppel_server PUBLIC PkgConfig::server_libraries doppel_static)
else()
  message(STATUS "Without doppel serve: libmicrohttpd, inih or libseccomp is missing, or DOPPEL_SERVER is off")
  add_library(doppel_server STATIC programs/server/absent.c ${common_sources})
  target_link_libraries(doppel_server PUBLIC doppel_static)
endif()
target_include_directories(doppel_server PUBLIC programs)
set_target_properties(doppel_server PROPERTIES POSITION_INDEPENDENT_CODE ON)
