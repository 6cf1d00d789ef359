# The pinned Unicode data (src/prompt/unicode/*.txt) becomes C++ array rows at configure time:
#   0041 005A Lu   ->   {0x0041,0x005A,Category::Lu},
# Numbers of the combining table stay decimal; rows of the mappings end with a 0.
# invar_unicode(TARGET) gives the target the folder of the rows.
function(invar_unicode target)
  set(data ${CMAKE_SOURCE_DIR}/src/prompt/unicode)
  set(out ${CMAKE_BINARY_DIR}/generated/unicode)
  foreach(name category word han combining decomposition composition flags
              compatibility lowercase)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${data}/${name}.txt)
    file(READ ${data}/${name}.txt rows)
    if(NOT rows MATCHES "^# (Unicode|tokenizers) ([0-9.]+),")
      message(FATAL_ERROR "${data}/${name}.txt: the first line does not name the Unicode version")
    endif()
    set(version_${name} ${CMAKE_MATCH_2})
    string(REGEX REPLACE "^#[^\n]*\n" "" rows "${rows}")
    if(name STREQUAL "category")
      string(REGEX REPLACE "([0-9A-F]+) ([0-9A-F]+) ([A-Z][a-z])\n"
                           "{0x\\1,0x\\2,Category::\\3},\n" rows "${rows}")
    elseif(name STREQUAL "combining")
      string(REGEX REPLACE "([0-9A-F]+) ([0-9A-F]+) ([0-9]+)\n" "{0x\\1,0x\\2,\\3},\n" rows "${rows}")
    elseif(name STREQUAL "word" OR name STREQUAL "han")
      string(REGEX REPLACE "([0-9A-F]+) ([0-9A-F]+)\n" "{0x\\1,0x\\2},\n" rows "${rows}")
    elseif(name STREQUAL "compatibility" OR name STREQUAL "lowercase")
      string(REGEX REPLACE "([0-9A-F]+)" "0x\\1," rows "${rows}")
      string(REPLACE "\n" "0,\n" rows "${rows}")
    else()
      string(REGEX REPLACE "([0-9A-F]+) ([0-9A-F]+) ([0-9A-F]+)\n" "{0x\\1,0x\\2,0x\\3},\n" rows "${rows}")
    endif()
    file(CONFIGURE OUTPUT ${out}/${name}.inc CONTENT "${rows}" @ONLY)
  endforeach()
  file(CONFIGURE OUTPUT ${out}/version.inc CONTENT "\"${version_category}\"\n" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
