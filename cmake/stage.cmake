# invar_stage(NAME DEPENDS a b): src/NAME/**/*.cc -> library invar_NAME; every *_test.cc there ->
# one GoogleTest program invar_NAME_test, run by ctest. Adding a file needs no edit here.
function(invar_stage name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  foreach(file ${INVAR_NOT_IN_WEB})  # cmake/web.cmake
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/src/${file})
  endforeach()
  invar_library(${name} "${sources}" "${ARG_DEPENDS}")
  invar_tests(${name} "${tests}")
endfunction()

function(invar_library name sources depends)
  set(scope PUBLIC)
  if(sources)
    add_library(invar_${name} STATIC ${sources})
  else()
    add_library(invar_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(invar_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  foreach(d ${depends})
    if(TARGET invar_${d})
      target_link_libraries(invar_${name} ${scope} invar_${d})
    else()
      target_link_libraries(invar_${name} ${scope} ${d})
    endif()
  endforeach()
endfunction()

# Test programs: invar_tests are all that this build runs, invar_tests_of_tier2 those of tier 2. The
# thread sanitizer has something to see only where there are threads. Under an emulator tier 2 runs
# what an instruction set can change; docs/design/tests.md says what the others find.
if(INVAR_TESTS)
  add_custom_target(invar_tests)
  add_custom_target(invar_tests_of_tier2)
endif()
set(INVAR_THREADED base run)
set(INVAR_BY_INSTRUCTION_SET base num num.lanes ops)
# Under a sanitizer these and what they alone link are of tier 3: an eighth of the build of asan.
set(INVAR_SANITIZED_IN_TIER3 http store serve tui)

# The program belongs to the tests of TIERS.
function(invar_test_program program tiers)
  add_dependencies(invar_tests ${program})
  if(tiers MATCHES "tier2")
    add_dependencies(invar_tests_of_tier2 ${program})
  endif()
endfunction()

# One ctest test for a program's cases: a process for each costs more than most cases. The output
# names those that fail.
function(invar_gtest name program)
  set(tiers "tier1;tier2;tier3")
  if(CMAKE_CROSSCOMPILING AND NOT name IN_LIST INVAR_BY_INSTRUCTION_SET)
    set(tiers tier3)
  elseif(INVAR_SANITIZE AND name IN_LIST INVAR_SANITIZED_IN_TIER3)
    set(tiers tier3)
  endif()
  add_test(NAME ${name} COMMAND ${program} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS "${tiers}" TIMEOUT 1800)
  invar_test_program(${program} "${tiers}")
endfunction()

# invar_sampled_test(N NAME [PART] COMMAND...): in tier 2 one commit in N runs it, or with PART every
# commit the N-th part of it (tests/sample.py). It knows the emulator.
function(invar_sampled_test n name)
  set(sampled ${name})
  if("${ARGV2}" STREQUAL PART)
    set(sampled --part)
    list(REMOVE_AT ARGN 0)
  endif()
  add_test(NAME ${name} COMMAND ${INVAR_PYTHON} -B ${CMAKE_SOURCE_DIR}/tests/sample.py ${n} ${sampled}
                                ${CMAKE_CROSSCOMPILING_EMULATOR} ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# Every test of this folder that says nothing else belongs to tiers 2 and 3.
function(invar_tiers)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    get_test_property(${test} LABELS labels)
    if(NOT labels)
      set_tests_properties(${test} PROPERTIES LABELS "tier2;tier3")
    endif()
  endforeach()
endfunction()

function(invar_tests name tests)
  if(INVAR_TESTS AND tests AND (NOT INVAR_SANITIZE STREQUAL "thread" OR name IN_LIST INVAR_THREADED))
    add_executable(invar_${name}_test ${tests})
    target_link_libraries(invar_${name}_test PRIVATE
                          invar_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    # A test computes little itself, those of lanes and kernels excepted.
    set(optimization -Og)
    if(name MATCHES "^(num|ops)$")
      set(optimization -O1)
    endif()
    target_compile_options(invar_${name}_test PRIVATE ${optimization})
    # INVAR_EMULATED: under an emulator or a sanitizer tests of very many inputs take a sample.
    set(slow 0)
    if(CMAKE_CROSSCOMPILING OR INVAR_SANITIZE)
      set(slow 1)
    endif()
    target_compile_definitions(invar_${name}_test PRIVATE INVAR_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                          INVAR_EMULATED=${slow})
    invar_gtest(${name} invar_${name}_test)
  endif()
endfunction()
