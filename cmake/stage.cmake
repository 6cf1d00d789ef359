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

# Test programs, all of them: what a build under a sanitizer makes. The thread sanitizer has
# something to see only where there are threads.
if(INVAR_TESTS)
  add_custom_target(invar_tests)
endif()
set(INVAR_THREADED base run)

# One ctest test for a program's cases: a process for each costs more than most cases. The output
# names those that fail.
function(invar_gtest name program)
  add_test(NAME ${name} COMMAND ${program} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS "tier1;tier2;tier3" TIMEOUT 1800)
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
    target_compile_options(invar_${name}_test PRIVATE -O1)  # three quarters of the time of -O2
    # INVAR_EMULATED: under an emulator tests that go through very many inputs take a sample.
    target_compile_definitions(invar_${name}_test PRIVATE INVAR_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                          INVAR_EMULATED=$<BOOL:${CMAKE_CROSSCOMPILING}>)
    invar_gtest(${name} invar_${name}_test)
    add_dependencies(invar_tests invar_${name}_test)
  endif()
endfunction()
