# Rooms: every folder of src/ops with a table of operations, ops.toml. By file name:
#   reference.cc   defines contract_NAME (kernels/op_contract.h) and row_NAME_reference
#   ops.toml       operands, attributes and results of each operation (tools/ops/generate.py)
#   room.cc        optional: what all rows share (shapes, units, packing), compiled once without ISA
#                  flags
#   cpu.cc         compiled once per instruction set, defines INVAR_ROW = row_NAME_ISA
#                  (INVAR_ROW_OF(NAME) where several operations share the room), a CpuKernel
#   cpu_ISA.cc     an override for one instruction set, compiled instead of cpu.cc there
#   cpu/extension.cc  compiled once per extension of an instruction set, defines INVAR_ROW_OF(NAME)
#                  of the operations that gain, which cpu/extension_rows.h lists
#   cuda.cu        a GpuKernel for every operation of the room (builds with INVAR_CUDA); beside it
#                  what it includes. cuda/sm90a/FILE.cu: kernels of cuda/FILE.cu for compute
#                  capability 9.0a alone, compiled where the build makes code for 9.0; then the
#                  other is compiled with INVAR_SM90A
#   LIBRARY.cc     library rows (kernels/vendor/vendor_kernel.h) of the operation that has the
#                  room's name; LIBRARY.cu those of a GPU
#   *_test.cc      part of invar_ops_test
#   cases.txt vectors.txt golden.txt   what the conformance harness runs
#                                      (tests/conformance/README.md)
# build/generated/ops/rows.inc lists contracts, CPU kernels (best instruction set first within an
# operation) and GPU kernels.
include(isa)
# Vendors' libraries that rooms may have rows of, and these rows, faster ones first.
set(INVAR_LIBRARY_ROWS_onednn onednn)
set(INVAR_LIBRARY_ROWS_cublas cublas_reduced cublas)

# Operations, their versions and their tables: tools/ops/generate.py writes, from the
# rooms' ops.toml, INVAR_OPS, INVAR_ROOM_<NAME> (the room of each), INVAR_ROOMS,
# INVAR_CHOICES and INVAR_EXTENDED_<ROOM> (operations with rows in cpu/extension_rows.h) for here,
# the library invar_opset (src/base/opset.h), op.td, table.h and attributes.h of rooms for includes,
# ops/attributes.cc, which reads attributes, and derivatives.py for the Python package.
find_program(INVAR_OPS_PYTHON NAMES python3 python REQUIRED)
set(INVAR_OPS_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(GLOB tables CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/ops.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tables}
             ${CMAKE_SOURCE_DIR}/src/ops/choices.toml ${CMAKE_SOURCE_DIR}/tools/ops/generate.py
             ${CMAKE_SOURCE_DIR}/tools/ops/derivatives.py)
execute_process(COMMAND ${INVAR_OPS_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/ops/generate.py
                        ${CMAKE_SOURCE_DIR} ${INVAR_OPS_GENERATED}
                RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the tables of operations were not made (see above)")
endif()
include(${INVAR_OPS_GENERATED}/ops.cmake)
add_library(invar_opset STATIC ${INVAR_OPS_GENERATED}/opset/opset.cc)
target_include_directories(invar_opset PRIVATE ${CMAKE_SOURCE_DIR}/src)

function(invar_rooms)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/ops)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/*.cc)
  list(APPEND sources ${INVAR_OPS_GENERATED}/ops/attributes.cc)
  foreach(room ${INVAR_ROOMS})
    foreach(isa ${INVAR_ISAS})
      set(file ${dir}/${room}/cpu_${isa}.cc)
      if(NOT EXISTS ${file})
        set(file ${dir}/${room}/cpu.cc)
      endif()
      if(EXISTS ${file} AND NOT room IN_LIST INVAR_REFERENCE_ROOMS)
        add_library(invar_${room}_${isa} OBJECT ${file})
        target_include_directories(invar_${room}_${isa} PRIVATE
                                   ${CMAKE_SOURCE_DIR}/src ${INVAR_OPS_GENERATED})
        string(TOUPPER ${isa} ISA)
        target_compile_definitions(invar_${room}_${isa} PRIVATE
                                   INVAR_ROW=row_${room}_${isa} INVAR_ISA="${isa}"
                                   INVAR_ISA_NS=${isa} INVAR_ISA_${ISA}=1)
        target_compile_options(invar_${room}_${isa} PRIVATE ${INVAR_ISA_FLAGS_${isa}})
        list(APPEND sources $<TARGET_OBJECTS:invar_${room}_${isa}>)
      endif()
      set(file ${dir}/${room}/cpu/extension.cc)
      if(NOT EXISTS ${file} OR room IN_LIST INVAR_REFERENCE_ROOMS)
        continue()
      endif()
      if(NOT INVAR_EXTENDED_${room})
        message(FATAL_ERROR "src/ops/${room}/ops.toml: cpu/extension.cc has rows of no operation")
      endif()
      foreach(extension ${INVAR_ISA_EXTENSIONS_${isa}})
        add_library(invar_${room}_${extension} OBJECT ${file})
        target_include_directories(invar_${room}_${extension} PRIVATE
                                   ${CMAKE_SOURCE_DIR}/src ${INVAR_OPS_GENERATED})
        string(TOUPPER ${isa} ISA)
        string(TOUPPER ${extension} EXTENSION)
        target_compile_definitions(invar_${room}_${extension} PRIVATE
                                   INVAR_ISA="${extension}" INVAR_ISA_NS=${extension} INVAR_ISA_${ISA}=1
                                   INVAR_EXTENSION_${EXTENSION}=1)
        target_compile_options(invar_${room}_${extension} PRIVATE
                               ${INVAR_ISA_FLAGS_${isa}} ${INVAR_ISA_EXTENSION_FLAGS_${extension}})
        list(APPEND sources $<TARGET_OBJECTS:invar_${room}_${extension}>)
        foreach(op ${INVAR_EXTENDED_${room}})  # best extension first
          list(APPEND rows_of_${op} ${extension})
        endforeach()
      endforeach()
    endforeach()
    list(APPEND sources ${dir}/${room}/reference.cc)
    if(EXISTS ${dir}/${room}/room.cc)
      list(APPEND sources ${dir}/${room}/room.cc)
    endif()
    foreach(library onednn cublas)
      if(EXISTS ${dir}/${room}/vendor/${library}.cc)
        list(APPEND sources ${dir}/${room}/vendor/${library}.cc)
      elseif(NOT EXISTS ${dir}/${room}/vendor/${library}.cu OR NOT INVAR_CUDA)
        continue()
      endif()
      foreach(row ${INVAR_LIBRARY_ROWS_${library}})
        string(APPEND library_declared "extern const VendorRow library_${room}_${row};\n")
        string(APPEND library_listed "    &library_${room}_${row},\n")
      endforeach()
    endforeach()
  endforeach()
  if(INVAR_CUDA)
    foreach(room ${INVAR_ROOMS})
      file(GLOB sources_cuda CONFIGURE_DEPENDS
           ${dir}/${room}/*.cu ${dir}/${room}/cuda/*.cu ${dir}/${room}/cuda/*/*.cu ${dir}/${room}/vendor/*.cu)
      list(FILTER sources_cuda EXCLUDE REGEX "/sm90a/")
      if(sources_cuda)
        add_library(invar_${room}_cuda OBJECT ${sources_cuda})
        target_include_directories(invar_${room}_cuda PRIVATE
                                   ${CMAKE_SOURCE_DIR}/src ${INVAR_OPS_GENERATED})
        target_compile_definitions(invar_${room}_cuda PRIVATE INVAR_ROW=row_${room}_cuda INVAR_ISA="cuda"
                                   INVAR_ISA_NS=cuda)
        target_compile_options(invar_${room}_cuda PRIVATE ${INVAR_ISA_FLAGS_cuda})
        list(APPEND sources $<TARGET_OBJECTS:invar_${room}_cuda>)
      endif()
      file(GLOB sources_sm90a CONFIGURE_DEPENDS ${dir}/${room}/cuda/sm90a/*.cu
           ${dir}/${room}/cuda/sm90a/*/*.cu)
      if(sources_sm90a AND CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)(90|all|native)")
        add_library(invar_${room}_sm90a OBJECT ${sources_sm90a})
        set_target_properties(invar_${room}_sm90a PROPERTIES CUDA_ARCHITECTURES 90a-real)
        target_include_directories(invar_${room}_sm90a PRIVATE
                                   ${CMAKE_SOURCE_DIR}/src ${INVAR_OPS_GENERATED})
        target_compile_definitions(invar_${room}_sm90a PRIVATE INVAR_ISA="cuda" INVAR_ISA_NS=cuda)
        target_compile_options(invar_${room}_sm90a PRIVATE ${INVAR_ISA_FLAGS_cuda})
        foreach(file ${sources_sm90a})
          cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${dir}/${room}/cuda/sm90a OUTPUT_VARIABLE name)
          set_property(SOURCE ${dir}/${room}/cuda/${name} APPEND PROPERTY COMPILE_DEFINITIONS INVAR_SM90A)
        endforeach()
        list(APPEND sources $<TARGET_OBJECTS:invar_${room}_sm90a>)
      endif()
    endforeach()
  endif()
  foreach(op ${INVAR_OPS})
    string(APPEND declared "extern const OpContract contract_${op};\n")
    string(APPEND contracts "    &contract_${op},\n")
    foreach(isa ${INVAR_ISAS} reference)
      foreach(extension ${INVAR_ISA_EXTENSIONS_${isa}})
        if(extension IN_LIST rows_of_${op})
          string(APPEND declared "extern const CpuKernel row_${op}_${extension};\n")
          string(APPEND cpu_kernels "    &row_${op}_${extension},\n")
        endif()
      endforeach()
      if(isa STREQUAL reference OR TARGET invar_${INVAR_ROOM_${op}}_${isa})
        string(APPEND declared "extern const CpuKernel row_${op}_${isa};\n")
        string(APPEND cpu_kernels "    &row_${op}_${isa},\n")
      endif()
    endforeach()
    if(TARGET invar_${INVAR_ROOM_${op}}_cuda)
      string(APPEND declared "extern const GpuKernel row_${op}_cuda;\n")
      string(APPEND gpu_kernels "    &row_${op}_cuda,\n")
    endif()
  endforeach()
  list(JOIN INVAR_ISAS "\", \"" isas)
  list(JOIN INVAR_ISA_EXTENSIONS "\", \"" extensions)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/ops/rows.inc CONTENT
       "namespace invar::ops {\n${declared}
static const OpContract* const kContracts[] = {\n${contracts}};
static const CpuKernel* const kCpuKernels[] = {\n${cpu_kernels}};
static const GpuKernel* const kGpuKernels[] = {\n${gpu_kernels}    nullptr};
static constexpr std::string_view kBuilt[] = {\"${isas}\", \"reference\"};
static constexpr std::string_view kExtensions[] = {\"${extensions}\"};\n}\n")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/ops/vendor_rows.inc CONTENT
       "namespace invar::ops {\n${library_declared}
static const VendorRow* const kVendorRows[] = {\n${library_listed}};\n}\n")
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${dir}/*_test.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  invar_library(ops "${sources}" "${ARG_DEPENDS}")
  target_include_directories(invar_ops PRIVATE ${INVAR_OPS_GENERATED} ${INVAR_OPS_GENERATED}/ops)
  get_target_property(type invar_base TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    target_link_libraries(invar_base INTERFACE invar_opset)
  else()
    target_link_libraries(invar_base PUBLIC invar_opset)
  endif()
  invar_tests(ops "${tests}")
  if(TARGET invar_ops_test)
    target_include_directories(invar_ops_test PRIVATE ${INVAR_OPS_GENERATED})
  endif()
endfunction()
