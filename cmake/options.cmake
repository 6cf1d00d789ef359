# What a caller chooses and the options of commands: tools/options/generate.py makes of
# src/generate/options.toml, apps/cli/options/commands.toml, apps/tui/form.toml and
# apps/python/requests.py.in the files of build/generated/options, for src/generate/options.h and
# apps; tools/options/request_fields.py makes of src/serve/protocol/fields.toml the rows of call.cc.
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/options/*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${scripts}
             ${CMAKE_SOURCE_DIR}/src/generate/options.toml
             ${CMAKE_SOURCE_DIR}/apps/cli/options/commands.toml ${CMAKE_SOURCE_DIR}/apps/tui/form.toml
             ${CMAKE_SOURCE_DIR}/apps/python/requests.py.in
             ${CMAKE_SOURCE_DIR}/src/serve/protocol/fields.toml
             ${CMAKE_SOURCE_DIR}/src/serve/protocol/routes.toml
             ${CMAKE_SOURCE_DIR}/src/serve/page/chat.html ${CMAKE_SOURCE_DIR}/src/serve/page/chat.css
             ${CMAKE_SOURCE_DIR}/src/serve/page/chat.js)
execute_process(COMMAND ${INVAR_OPS_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/options/generate.py
                        ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated
                RESULT_VARIABLE failed)
if(NOT failed)
  execute_process(COMMAND ${INVAR_OPS_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/options/request_fields.py
                          ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated
                  RESULT_VARIABLE failed)
endif()
if(failed)
  message(FATAL_ERROR "the tables of options were not made (see above)")
endif()
