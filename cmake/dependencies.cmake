# The libraries doppel stands on, each with its reason in docs/DEPENDENCIES.md.
set(DOPPEL_PKG_CONFIG_MODULES libutf8proc libxxhash libcrypto zlib libdeflate libzstd liblzma libbrotlidec simdjson libidn2 libpsl libxml-2.0 uchardet lmdb)

find_package(PkgConfig)
find_package(Threads REQUIRED)
pkg_check_modules(dependencies IMPORTED_TARGET ${DOPPEL_PKG_CONFIG_MODULES})
find_package(BZip2) # it has no file for pkg-config
if(NOT dependencies_FOUND OR NOT BZIP2_FOUND)
  message(FATAL_ERROR "A library is missing: bzip2 or one of ${DOPPEL_PKG_CONFIG_MODULES}.\n"
                      "On Debian, `make deps` installs them; docs/DEPENDENCIES.md lists them for other systems.")
endif()

# Redis, a store that several processes share: on by default where hiredis is found. Without it a redis:// URL is
# refused with a message (lib/known/known.c).
option(DOPPEL_REDIS "shared stores on Redis" ON)
pkg_check_modules(redis_libraries IMPORTED_TARGET hiredis)
if(DOPPEL_REDIS AND redis_libraries_FOUND)
  set(with_redis TRUE)
  set(redis_target PkgConfig::redis_libraries)
  # It would rename calls of the system in all that is built with it (_FILE_OFFSET_BITS: mmap becomes mmap64).
  set_target_properties(${redis_target} PROPERTIES INTERFACE_COMPILE_OPTIONS "" INTERFACE_COMPILE_DEFINITIONS "")
else()
  set(with_redis FALSE)
  set(redis_target)
  message(STATUS "Without Redis: hiredis is missing, or DOPPEL_REDIS is off")
endif()
