# invar_conformance_runner(DEPENDS a): src/conformance as a library, with every room's cases.txt,
# vectors.txt and golden.txt embedded, so that `invar doctor` needs no source tree. The texts become
# one C++ file in the build folder, made anew when one of them changes.
function(invar_conformance_runner)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(embedded ${CMAKE_BINARY_DIR}/generated/conformance/rooms.cc)
  foreach(room ${INVAR_ROOMS})
    foreach(text cases vectors golden)
      list(APPEND texts ${CMAKE_SOURCE_DIR}/src/ops/${room}/tests/${text}.txt)
    endforeach()
  endforeach()
  list(JOIN INVAR_ROOMS " " rooms)  # a list would fall apart on the command line
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${embedded} DEPENDS ${texts} ${script} VERBATIM
                     COMMENT "Embedding the rooms' cases"
                     COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/src/ops "-DROOMS=${rooms}"
                             -DOUT=${embedded} -P ${script})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/conformance/*.cc)
  invar_library(conformance_runner "${sources};${embedded}" "${ARG_DEPENDS}")
endfunction()
