# The libraries doppel stands on, each with its reason in docs/DEPENDENCIES.md.
set(DOPPEL_PKG_CONFIG_MODULES libutf8proc libxxhash libcrypto zlib libzstd libbrotlidec simdjson libidn2 libpsl libxml-2.0 uchardet lmdb)

find_package(PkgConfig)
find_package(Threads REQUIRED)
pkg_check_modules(dependencies IMPORTED_TARGET ${DOPPEL_PKG_CONFIG_MODULES})
if(NOT dependencies_FOUND)
  message(FATAL_ERROR "A library is missing: one of ${DOPPEL_PKG_CONFIG_MODULES}.\n"
                      "On Debian, `make deps` installs them; docs/DEPENDENCIES.md lists them for other systems.")
endif()
