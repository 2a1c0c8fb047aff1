# The rest of `make test`: what needs the repository, Python, or the other builds under build/. Registered in the release
# build only, so that one ctest runs all of it. Full size (`make test-full`) adds repetitions.
set(builds ${PROJECT_BINARY_DIR})
set(python ${builds}/venv/bin/python)
set(whole FALSE)
if(DOPPEL_SUITE STREQUAL "full")
  set(whole TRUE)
endif()

# suite_test(NAME LABEL [WAITS] [QUICK] COMMAND ... [ENVIRONMENT ...]): WAITS as of test_properties in CMakeLists.txt, QUICK is
# what runs at reduced size in the full suite, too.
function(suite_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 test "WAITS;QUICK" "" "COMMAND;ENVIRONMENT")
  add_test(NAME ${name} COMMAND ${test_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(size ${DOPPEL_SUITE})
  if(test_QUICK)
    set(size quick)
  endif()
  test_properties(${name} ${label} ${test_WAITS})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "DOPPEL_SUITE=${size};${test_ENVIRONMENT}")
endfunction()

# A test of the build asan or tsan.
function(sanitizer_test build name)
  suite_test(${build}.${name} sanitizer QUICK ${ARGN})
endfunction()

# Gates: scripts/gates NAME.
set(gates format arrows shape symbols paths markdown packages shell readme install levels)
if(only)
  list(REMOVE_ITEM gates readme) # its examples need Redis and Kafka
endif()
foreach(gate ${gates})
  suite_test(gate.${gate} gate COMMAND scripts/gates ${gate})
endforeach()
if(TARGET doppel)
  suite_test(demo cli COMMAND scripts/demo)
endif()

# The independent reference, in Python.
file(GLOB references CONFIGURE_DEPENDS reference/test_*.py)
if(only)
  list(FILTER references EXCLUDE REGEX "test_(text|reference)") # the longest
endif()
foreach(source ${references})
  get_filename_component(name ${source} NAME_WE)
  suite_test(reference.${name} reference COMMAND ${python} ${source}
             ENVIRONMENT DOPPEL_LIB=${builds}/libdoppel.so DOPPEL_BUILD=${builds})
endforeach()

# Accuracy: method auto against comparing each with each, on invented documents.
if(TARGET doppel)
  suite_test(accuracy.quick reference COMMAND tests/accuracy/quick ${builds})
endif()

# The Python binding, by itself; `make check` runs the module of this build, the rest the wheel that is made below.
if(only AND TARGET doppel_python)
  suite_test(python.plain python COMMAND ${builds}/python-plain/bin/python -m pytest tests/python
             ENVIRONMENT PYTHONPATH=${builds}/python)
endif()

# The server, as a process of its own.
if(TARGET doppel AND DOPPEL_SERVER AND server_libraries_FOUND)
  set(server_names routes lists history runs folders client same bad_input other_sites operation store)
  if(only)
    set(server_names routes same)
  endif()
  foreach(name ${server_names})
    suite_test(server.${name} server WAITS COMMAND ${python} tests/server/test_${name}.py ${builds})
  endforeach()
endif()
if(only)
  return()
endif()

# Pages, in a real browser.
if(TARGET doppel)
  suite_test(browser.report browser WAITS COMMAND ${python} tests/browser/test_report.py ${builds})
endif()
if(TARGET doppel AND DOPPEL_SERVER AND server_libraries_FOUND)
  suite_test(browser.console browser WAITS COMMAND ${python} tests/browser/test_console.py ${builds})
endif()

# The server with the sanitizers.
if(TARGET doppel AND DOPPEL_SERVER AND server_libraries_FOUND)
  foreach(name routes history folders bad_input other_sites operation store)
    sanitizer_test(asan server.${name} WAITS COMMAND ${python} tests/server/test_${name}.py ${builds}/asan)
    if(whole OR name MATCHES "routes|operation|store")
      sanitizer_test(tsan server.${name} WAITS COMMAND ${python} tests/server/test_${name}.py ${builds}/tsan)
    endif()
  endforeach()
endif()

# A memory that several processes share, with real servers that are killed, cut off, filled and damaged; with the
# sanitizers, too, what makes the command take unusual ways.
if(TARGET doppel AND with_redis)
  foreach(name several same format cuts expiry trouble hostile kills rights)
    suite_test(redis.${name} redis WAITS COMMAND ${python} tests/redis/run.py ${builds} test_${name})
  endforeach()
  set(asan_redis test_hostile test_cuts.Cuts.test_versions test_trouble.Trouble.test_functions_are_flushed_meanwhile)
  set(tsan_redis test_cuts.Cuts.test_all_ways)
  if(whole)
    set(asan_redis test_hostile test_cuts test_trouble)
    set(tsan_redis test_cuts)
  endif()
  foreach(build asan tsan)
    foreach(name ${${build}_redis})
      string(REGEX REPLACE "^test_([a-z]+).*" "redis.\\1" short ${name})
      sanitizer_test(${build} ${short} WAITS COMMAND ${python} tests/redis/run.py ${builds}/${build} ${name})
    endforeach()
  endforeach()
endif()

# The stream, with a real Kafka and a real Redis; with the sanitizers, too, the records of every shape.
if(TARGET doppel AND DOPPEL_KAFKA AND stream_libraries_FOUND)
  suite_test(stream stream WAITS COMMAND ${python} tests/stream/run.py ${builds})
  foreach(build asan tsan)
    if(whole OR build STREQUAL asan)
      sanitizer_test(${build} stream WAITS COMMAND ${python} tests/stream/run.py ${builds}/${build} test_records)
    endif()
  endforeach()
endif()

# The Python binding: the wheel is made (of its sdist), installed where pytest alone is and where all packages are that it
# works with, and tested in both. With the sanitizers, the module of the build asan.
if(TARGET doppel_python)
  set(python_packages ${builds}/python-venv/bin/python)
  suite_test(python.wheel python COMMAND scripts/wheel)
  suite_test(python.install python COMMAND tests/python/install ${builds}/wheel ${builds}/python-plain ${builds}/python-venv
                                                   ${builds}/spark-venv)
  suite_test(python.plain python COMMAND ${builds}/python-plain/bin/python -m pytest tests/python)
  set_tests_properties(python.wheel PROPERTIES FIXTURES_SETUP python_wheel)
  set_tests_properties(python.install PROPERTIES FIXTURES_REQUIRED python_wheel FIXTURES_SETUP python_installed)
  set_tests_properties(python.plain PROPERTIES FIXTURES_REQUIRED python_installed)
  file(GLOB python_tests CONFIGURE_DEPENDS python/test_*.py)
  foreach(source ${python_tests})
    get_filename_component(name ${source} NAME_WE)
    suite_test(python.${name} python COMMAND ${python_packages} -m pytest ${source}
               ENVIRONMENT DOPPEL_WHEEL=${builds}/wheel DOPPEL_COMMAND=${builds}/doppel)
    set_tests_properties(python.${name} PROPERTIES FIXTURES_REQUIRED python_installed)
  endforeach()
  sanitizer_test(asan python COMMAND tests/python/asan ${builds}/asan ${python_packages}
                 ENVIRONMENT DOPPEL_COMMAND=${builds}/doppel)

  # Spark, on a real cluster of one master and two workers on loopback; at full size with an executor that is killed.
  suite_test(spark spark COMMAND ${builds}/spark-venv/bin/python -m pytest -c tests/python/pytest.ini
                                 --rootdir tests/spark tests/spark)
  set_tests_properties(spark PROPERTIES FIXTURES_REQUIRED python_installed)
endif()

# Sanitizers: the unit tests in the builds asan and tsan, and the command tests. What tests kernels runs at each CPU level,
# the rest at the best one, and at each at full size; with the thread sanitizer what starts threads.
list(GET cpu_levels -1 best_level)
foreach(name ${unit_names})
  set(waits)
  if(name MATCHES "${waiting}")
    set(waits WAITS)
  endif()
  set(levels ${best_level})
  if(name MATCHES "kernel" OR whole)
    set(levels ${cpu_levels})
  endif()
  if(name MATCHES "floods" AND NOT whole)
    set(levels) # counts what is read, at length
  endif()
  foreach(level ${levels})
    sanitizer_test(asan ${name}.${level} ${waits} COMMAND ${builds}/asan/tests/${name} ENVIRONMENT DOPPEL_CPU=${level})
  endforeach()
  if(name IN_LIST thread_names OR whole)
    sanitizer_test(tsan ${name} ${waits} COMMAND ${builds}/tsan/tests/${name})
  endif()
endforeach()
if(TEST cli)
  set(with_addresses ${cli_names} ${cli_redis_names})
  list(REMOVE_ITEM with_addresses add_threads dedup_same packed_output) # the longest; unit tests do the same
  if(whole)
    set(with_addresses)
  endif()
  sanitizer_test(asan cli COMMAND tests/cli/run ${builds}/asan ${with_addresses})
  set(with_threads add backup_live dedup interrupted join pairs store threads trim)
  if(whole)
    set(with_threads)
  endif()
  sanitizer_test(tsan cli COMMAND tests/cli/run ${builds}/tsan ${with_threads})
endif()

# An index that is damaged in every way, under every command and the server.
if(TARGET doppel AND DOPPEL_SERVER AND server_libraries_FOUND)
  suite_test(torture.damage torture COMMAND ${python} tests/torture/damage.py ${builds})
  sanitizer_test(asan torture_damage COMMAND ${python} tests/torture/damage.py ${builds}/asan 1 15)
endif()

# Of the tortures those that need no shim; with the thread sanitizer fewer documents.
foreach(name torture_kill torture_load torture_readers torture_limits)
  sanitizer_test(asan ${name} COMMAND ${builds}/asan/tests/${name})
endforeach()
sanitizer_test(tsan torture_load COMMAND ${builds}/tsan/tests/torture_load)
sanitizer_test(tsan torture_threads COMMAND ${builds}/tsan/tests/torture_threads 300)

# Fuzz targets: ten seconds each beside other tests, ten minutes at full size, with a processor of their own.
set(fuzz_seconds 10)
set(waits WAITS)
if(whole)
  set(fuzz_seconds 600)
  set(waits)
endif()
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/fuzz_*.c)
foreach(source ${fuzz_targets})
  get_filename_component(name ${source} NAME_WE)
  suite_test(fuzz.${name} fuzz ${waits} COMMAND scripts/fuzz ${name} ${fuzz_seconds})
endforeach()

# The other compiler, and 64-bit ARM: the unit tests once more, those for ARM under emulation.
if(whole)
  foreach(name ${unit_names})
    suite_test(clang.${name} clang QUICK COMMAND ${builds}/clang/tests/${name})
    foreach(level ${arm_levels})
      suite_test(arm.${name}.${level} arm QUICK COMMAND qemu-aarch64 -L ${builds}/sysroot ${builds}/aarch64/tests/${name}
                 ENVIRONMENT DOPPEL_CPU=${level})
    endforeach()
  endforeach()
endif()

if(whole)
  set_tests_properties(gate.levels PROPERTIES LABELS arm) # compares with the build for ARM
endif()

# The longest begin first: those that wait, then those that compute.
foreach(name stream spark redis.cuts browser.console redis.format)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST 1000)
  endif()
endforeach()
foreach(name python.wheel asan.python asan.cli tsan.cli cli reference.test_text reference.test_join server.same
             torture.kill asan.torture_kill tsan.test_join_two tsan.test_join)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST 500)
  endif()
endforeach()
