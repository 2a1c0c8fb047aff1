# doppel stream, on by default where its libraries are found: programs/stream/*.c. Without them the command says that it
# was built without.
option(DOPPEL_KAFKA "build doppel stream" ON)
pkg_check_modules(stream_libraries IMPORTED_TARGET rdkafka libmicrohttpd)
file(GLOB stream_sources CONFIGURE_DEPENDS programs/stream/*.c)

if(DOPPEL_KAFKA AND stream_libraries_FOUND)
  list(FILTER stream_sources EXCLUDE REGEX "/absent.c$")
  add_library(doppel_stream STATIC ${stream_sources})
  target_link_libraries(doppel_stream PUBLIC doppel_server PkgConfig::stream_libraries)
  if(DOPPEL_SANITIZE MATCHES thread)
    target_sources(doppel_stream INTERFACE ${PROJECT_SOURCE_DIR}/tests/sanitizer/rdkafka_threads.c)
  endif()
else()
  message(STATUS "Without doppel stream: librdkafka or libmicrohttpd is missing, or DOPPEL_KAFKA is off")
  add_library(doppel_stream STATIC programs/stream/absent.c)
  target_link_libraries(doppel_stream PUBLIC doppel_server)
endif()
