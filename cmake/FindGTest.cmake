# GoogleTest: the installed one, or for another processor compiled from the sources that
# libgtest-dev brings along.
if(CMAKE_CROSSCOMPILING)
  find_path(GTEST_SOURCE googletest/CMakeLists.txt PATHS /usr/src PATH_SUFFIXES googletest src/googletest
            NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  if(NOT TARGET GTest::gtest)
    set(INSTALL_GTEST OFF)
    add_subdirectory(${GTEST_SOURCE} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  endif()
  set(GTest_FOUND TRUE)
else()
  find_package(GTest CONFIG REQUIRED)
endif()
