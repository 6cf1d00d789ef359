# invar_cases(DEPENDS a): the conformance runner as a library (src/conformance), with every room's cases.txt,
# vectors.txt and golden.txt inside, so that `invar doctor` needs no source tree. The texts become one C++ file in the
# build folder, made anew when one of them changes.
function(invar_cases)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/conformance)
  set(embedded ${CMAKE_BINARY_DIR}/generated/cases/rooms.cc)
  foreach(room ${INVAR_ROOMS})
    foreach(text cases vectors golden)
      list(APPEND texts ${CMAKE_SOURCE_DIR}/src/ops/${room}/tests/${text}.txt)
    endforeach()
  endforeach()
  list(JOIN INVAR_ROOMS " " rooms)  # a list would fall apart on the command line
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${embedded} DEPENDS ${texts} ${script} VERBATIM
                     COMMENT "Embedding the rooms' cases"
                     COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/src/ops "-DROOMS=${rooms}" -DOUT=${embedded}
                             -P ${script})
  add_library(invar_cases STATIC ${dir}/case.cc ${dir}/fill.cc ${dir}/runner.cc ${dir}/fused.cc ${dir}/rooms.cc ${dir}/doctor.cc
                                 ${dir}/machine.cc ${dir}/machine_report.cc ${embedded})
  target_include_directories(invar_cases PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(d ${ARG_DEPENDS})
    target_link_libraries(invar_cases PUBLIC invar_${d})
  endforeach()
endfunction()
