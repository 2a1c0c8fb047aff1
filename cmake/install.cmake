# make install: header, libraries, pkg-config file, the command, man pages, shell completion.
string(REPLACE ";" " " DOPPEL_REQUIRES_PRIVATE "${DOPPEL_PKG_CONFIG_MODULES}")
configure_file(cmake/doppel.pc.in doppel.pc @ONLY)
install(FILES include/doppel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS doppel_static doppel_shared)
install(FILES ${PROJECT_BINARY_DIR}/doppel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET doppel)
  install(TARGETS doppel)
endif()
