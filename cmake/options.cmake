# What a caller chooses and the options of commands: tools/options/generate.py makes of
# src/generate/options.toml, apps/cli/options/commands.toml and apps/tui/form.toml the files of
# build/generated/options, which src/generate/options.h and programs include.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_SOURCE_DIR}/src/generate/options.toml
             ${CMAKE_SOURCE_DIR}/apps/cli/options/commands.toml ${CMAKE_SOURCE_DIR}/apps/tui/form.toml
             ${CMAKE_SOURCE_DIR}/tools/options/generate.py)
execute_process(COMMAND ${INVAR_OPS_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/options/generate.py
                        ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated
                RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the tables of options were not made (see above)")
endif()
