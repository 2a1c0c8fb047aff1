# The rest of `make test`: what needs the repository, Python, or the other builds under build/. Registered in the release
# build only, so that one ctest runs all of it.
set(builds ${PROJECT_BINARY_DIR})

function(suite_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "" "COMMAND;ENVIRONMENT")
  add_test(NAME ${name} COMMAND ${test_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  list(PREPEND test_ENVIRONMENT DOPPEL_SUITE=${DOPPEL_SUITE})
  set_tests_properties(${name} PROPERTIES LABELS ${label} ENVIRONMENT "${test_ENVIRONMENT}" TIMEOUT 3600)
endfunction()

# Gates: scripts/gates NAME.
foreach(gate format arrows symbols paths packages shell readme install levels)
  suite_test(gate.${gate} gate COMMAND scripts/gates ${gate})
endforeach()
if(TARGET doppel)
  suite_test(demo cli COMMAND scripts/demo)
endif()

# The independent reference, in Python.
file(GLOB references CONFIGURE_DEPENDS reference/test_*.py)
foreach(source ${references})
  get_filename_component(name ${source} NAME_WE)
  suite_test(reference.${name} reference COMMAND ${builds}/venv/bin/python ${source}
             ENVIRONMENT DOPPEL_LIB=${builds}/libdoppel.so DOPPEL_BUILD=${builds})
endforeach()

# Accuracy: method auto against comparing each with each, on invented documents.
if(TARGET doppel)
  suite_test(accuracy.quick reference COMMAND tests/accuracy/quick ${builds})
endif()

# Pages, in a real browser.
if(TARGET doppel)
  suite_test(browser.report browser COMMAND ${builds}/venv/bin/python tests/browser/test_report.py ${builds})
endif()
if(TARGET doppel AND DOPPEL_SERVER AND server_libraries_FOUND)
  suite_test(browser.console browser COMMAND ${builds}/venv/bin/python tests/browser/test_console.py ${builds})
endif()

# The server, as a process of its own; with the sanitizers, too.
if(TARGET doppel AND DOPPEL_SERVER AND server_libraries_FOUND)
  foreach(name routes bad_input other_sites operation same store)
    suite_test(server.${name} server COMMAND ${builds}/venv/bin/python tests/server/test_${name}.py ${builds})
  endforeach()
  foreach(name routes bad_input other_sites operation store)
    suite_test(asan.server.${name} sanitizer COMMAND ${builds}/venv/bin/python tests/server/test_${name}.py ${builds}/asan
               ENVIRONMENT DOPPEL_SUITE=quick)
    suite_test(tsan.server.${name} sanitizer COMMAND ${builds}/venv/bin/python tests/server/test_${name}.py ${builds}/tsan
               ENVIRONMENT DOPPEL_SUITE=quick)
  endforeach()
endif()

# A memory that several processes share, with real servers that are killed, cut off, filled and damaged; with the
# sanitizers, too, what makes the command take unusual ways.
if(TARGET doppel AND with_redis)
  foreach(name several same format cuts expiry trouble hostile kills rights)
    suite_test(redis.${name} redis COMMAND ${builds}/venv/bin/python tests/redis/run.py ${builds} test_${name})
  endforeach()
  foreach(name cuts trouble hostile)
    suite_test(asan.redis.${name} sanitizer COMMAND ${builds}/venv/bin/python tests/redis/run.py ${builds}/asan
               test_${name} ENVIRONMENT DOPPEL_SUITE=quick)
  endforeach()
  suite_test(tsan.redis.cuts sanitizer COMMAND ${builds}/venv/bin/python tests/redis/run.py ${builds}/tsan test_cuts
             ENVIRONMENT DOPPEL_SUITE=quick)
endif()

# The stream, with a real Kafka and a real Redis; of what needs no time but memory, with the sanitizers, too.
if(TARGET doppel AND DOPPEL_KAFKA AND stream_libraries_FOUND)
  suite_test(stream stream COMMAND ${builds}/venv/bin/python tests/stream/run.py ${builds})
  foreach(build asan tsan)
    suite_test(${build}.stream sanitizer COMMAND ${builds}/venv/bin/python tests/stream/run.py ${builds}/${build}
               test_records ENVIRONMENT DOPPEL_SUITE=quick)
  endforeach()
endif()

# Sanitizers: the unit tests in the builds asan and tsan, and the command tests. What tests kernels runs at each CPU level,
# the rest at the best one, and at each at full size.
list(GET cpu_levels -1 best_level)
foreach(name ${unit_names})
  set(levels ${best_level})
  if(name MATCHES "kernel" OR DOPPEL_SUITE STREQUAL full)
    set(levels ${cpu_levels})
  endif()
  foreach(level ${levels})
    suite_test(asan.${name}.${level} sanitizer COMMAND ${builds}/asan/tests/${name} ENVIRONMENT DOPPEL_CPU=${level}
               DOPPEL_SUITE=quick)
  endforeach()
  # Faults are injected one after the other, exact results are compared at length, and the last start no thread.
  if(NOT name MATCHES "_faults$|_exact$|^test_(kernel_.*|url|words|levenshtein|title_index|passages|page|decode|costs|radii)$"
     OR DOPPEL_SUITE STREQUAL full)
    suite_test(tsan.${name} sanitizer COMMAND ${builds}/tsan/tests/${name} ENVIRONMENT DOPPEL_SUITE=quick)
  endif()
endforeach()
if(TEST cli)
  suite_test(asan.cli sanitizer COMMAND tests/cli/run ${builds}/asan)
  set(with_threads add add_presets backup_live dedup dedup_against_index fingerprint interrupted join many_files pairs
      store store_faults threads)
  if(DOPPEL_SUITE STREQUAL full)
    set(with_threads)
  endif()
  suite_test(tsan.cli sanitizer COMMAND tests/cli/run ${builds}/tsan ${with_threads})
endif()

# An index that is damaged in every way, under every command and the server.
if(TARGET doppel AND DOPPEL_SERVER AND server_libraries_FOUND)
  suite_test(torture.damage torture COMMAND ${builds}/venv/bin/python tests/torture/damage.py ${builds})
  suite_test(asan.torture_damage sanitizer COMMAND ${builds}/venv/bin/python tests/torture/damage.py ${builds}/asan 1 30
             ENVIRONMENT DOPPEL_SUITE=quick)
endif()

# Of the tortures those that need no shim; with the thread sanitizer fewer documents.
foreach(name torture_kill torture_load torture_readers torture_limits)
  suite_test(asan.${name} sanitizer COMMAND ${builds}/asan/tests/${name} ENVIRONMENT DOPPEL_SUITE=quick)
endforeach()
suite_test(tsan.torture_load sanitizer COMMAND ${builds}/tsan/tests/torture_load ENVIRONMENT DOPPEL_SUITE=quick)
suite_test(tsan.torture_threads sanitizer COMMAND ${builds}/tsan/tests/torture_threads 1000
           ENVIRONMENT DOPPEL_SUITE=quick)

# Fuzz targets: ten seconds each, ten minutes at full size.
set(fuzz_seconds 10)
if(DOPPEL_SUITE STREQUAL full)
  set(fuzz_seconds 600)
endif()
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/fuzz_*.c)
foreach(source ${fuzz_targets})
  get_filename_component(name ${source} NAME_WE)
  suite_test(fuzz.${name} fuzz COMMAND scripts/fuzz ${name} ${fuzz_seconds})
endforeach()

# The other compiler, and 64-bit ARM: the unit tests once more, those for ARM under emulation.
if(DOPPEL_SUITE STREQUAL full)
  foreach(name ${unit_names})
    suite_test(clang.${name} unit COMMAND ${builds}/clang/tests/${name} ENVIRONMENT DOPPEL_SUITE=quick)
    foreach(level ${arm_levels})
      suite_test(arm.${name}.${level} arm COMMAND qemu-aarch64 -L ${builds}/sysroot ${builds}/aarch64/tests/${name}
                 ENVIRONMENT DOPPEL_CPU=${level} DOPPEL_SUITE=quick)
    endforeach()
  endforeach()
endif()
