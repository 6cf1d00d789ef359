# Rooms: every operation of spec/opset.toml is a folder src/ops/NAME, or lives with others of one
# kind in the folder that its `room` names. By file name:
#   reference.cc   defines contract_NAME (kernels/op_contract.h) and row_NAME_reference
#   table.h        optional, where several operations share the room: a row for each
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

# Rooms whose table.h has rows X(HOW, NAME, "OPERATOR", "ATTRIBUTE"...): build/generated/ops/ROOM/
# table.td, which their op.td includes, has each operation as an instance of the class ROOM_HOW of
# op.td. Attributes are f32, those of a `test` i64. result: the files made.
function(invar_room_tables result)
  set(made "")
  file(GLOB tables CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/table.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tables})
  foreach(table ${tables})
    cmake_path(GET table PARENT_PATH room)
    cmake_path(GET room FILENAME room)
    file(READ ${table} text)
    string(REGEX MATCHALL "X[(][a-z0-9_]+, [a-z0-9_]+, \"[^\n)]*[)]" rows "${text}")
    set(ops "")
    foreach(row ${rows})
      string(REGEX MATCH "^X[(]([a-z0-9_]+), ([a-z0-9_]+), \"[^\"]*\"(.*)[)]$" row ${row})
      set(how ${CMAKE_MATCH_1})
      set(op ${CMAKE_MATCH_2})
      set(attributes "${CMAKE_MATCH_3}")
      string(REGEX MATCHALL "[a-z0-9]+" words ${op})
      set(class "")
      foreach(word ${words})  # exp_f64: ExpF64
        string(SUBSTRING ${word} 0 1 first)
        string(SUBSTRING ${word} 1 -1 rest)
        string(TOUPPER ${first} first)
        string(APPEND class ${first}${rest})
      endforeach()
      if(attributes)
        set(type F32)
        if(how STREQUAL test)
          set(type I64)
        endif()
        string(REGEX REPLACE "\"([a-z]+)\"" "${type}Attr:$\\1" attributes "${attributes}")
        string(REGEX REPLACE "^, (.*)$" ", (ins \\1)" attributes "${attributes}")
      endif()
      string(APPEND ops "def Repro_${class}Op : ${room}_${how}<\"${op}\"${attributes}>;\n")
    endforeach()
    if(rows)
      set(file ${CMAKE_BINARY_DIR}/generated/ops/${room}/table.td)
      file(CONFIGURE OUTPUT ${file} CONTENT "${ops}" @ONLY)
      list(APPEND made ${file})
    endif()
  endforeach()
  set(${result} "${made}" PARENT_SCOPE)
endfunction()

# The types of attributes, as the rooms' op.td files declare them: a table for
# src/base/attribute_types.h. An attribute name has one type, whatever the operation.
function(invar_attribute_table result)
  set(I64 i64)
  set(F32 f32)
  set(Str string)
  set(DenseI64Array i64_array)
  set(names "")
  set(table "")
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/op.td)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  invar_room_tables(tables)
  list(APPEND files ${tables})
  foreach(file ${files})
    file(READ ${file} text)
    string(REGEX MATCHALL "(I64|F32|Str|DenseI64Array)Attr>?:[$][a-z0-9_]+" declared "${text}")
    foreach(one ${declared})
      string(REGEX MATCH "^(.*)Attr>?:[$](.*)$" one ${one})
      list(APPEND names ${CMAKE_MATCH_2})
      if(DEFINED type_${CMAKE_MATCH_2} AND NOT "${type_${CMAKE_MATCH_2}}" STREQUAL "${CMAKE_MATCH_1}")
        message(FATAL_ERROR "${file}: attribute ${CMAKE_MATCH_2} has another type than in another operation")
      endif()
      set(type_${CMAKE_MATCH_2} ${CMAKE_MATCH_1})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES names)
  list(SORT names)
  foreach(name ${names})
    string(APPEND table "    {\"${name}\", AttributeType::${${type_${name}}}},\n")
  endforeach()
  set(${result} "${table}" PARENT_SCOPE)
endfunction()

# Operations, versions and numerics -> the library invar_opset (src/base/opset.h); INVAR_OPS = their
# names, INVAR_ROOM_<NAME> the room of each, INVAR_ROOMS the rooms, INVAR_CHOICES the numerics
# choices.
function(invar_opset)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/opset.toml)
  file(STRINGS ${CMAKE_SOURCE_DIR}/spec/opset.toml lines REGEX "^(\\[|version|numerics|room|split)")
  set(op "")
  foreach(line ${lines})
    if(line MATCHES "^\\[([a-z0-9_]+)\\]$")
      set(op ${CMAKE_MATCH_1})
      set(room ${op})
      list(APPEND ops ${op})
    elseif(line MATCHES "^\\[choice\\.([a-z0-9-]+)\\]$")
      list(APPEND choices ${CMAKE_MATCH_1})
    elseif(line MATCHES "^version = ([0-9]+)$")
      set(version ${CMAKE_MATCH_1})
    elseif(line MATCHES "^room = \"([a-z0-9_]+)\"$")
      set(room ${CMAKE_MATCH_1})
    elseif(line MATCHES "^numerics = \"([a-z0-9-]+)\"$")
      string(APPEND table "    {\"${op}\", ${version}, \"${CMAKE_MATCH_1}\", \"${room}\"},\n")
      set(INVAR_ROOM_${op} ${room} PARENT_SCOPE)
      list(APPEND rooms ${room})
    elseif(line MATCHES "^split = \"([a-z]+)\"$")
      string(APPEND splits "    {\"${op}\", \"${CMAKE_MATCH_1}\"},\n")
    else()
      message(FATAL_ERROR "spec/opset.toml: not understood: ${line}")
    endif()
  endforeach()
  list(JOIN choices "\", \"" choice_table)
  invar_attribute_table(attribute_table)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/opset/opset.cc CONTENT
       "#include \"base/attribute_types.h\"
#include \"base/opset.h\"\n
namespace invar {
static constexpr OpInfo kOps[] = {\n${table}};
std::span<const OpInfo> opset() { return kOps; }
const OpInfo* op_info(std::string_view op) {
  for (const OpInfo& o : kOps)
    if (o.op == op) return &o;
  return nullptr;
}
static constexpr std::string_view kChoices[] = {\"${choice_table}\"};
std::span<const std::string_view> choices() { return kChoices; }
static constexpr OpSplit kSplits[] = {\n${splits}};
std::span<const OpSplit> op_splits() { return kSplits; }
static constexpr AttributeInfo kAttributes[] = {\n${attribute_table}};
std::span<const AttributeInfo> attribute_infos() { return kAttributes; }
}  // namespace invar\n")
  add_library(invar_opset STATIC ${CMAKE_BINARY_DIR}/generated/opset/opset.cc)
  target_include_directories(invar_opset PRIVATE ${CMAKE_SOURCE_DIR}/src)
  list(REMOVE_DUPLICATES rooms)
  set(INVAR_OPS ${ops} PARENT_SCOPE)
  set(INVAR_CHOICES ${choices} PARENT_SCOPE)
  set(INVAR_ROOMS ${rooms} PARENT_SCOPE)
endfunction()
invar_opset()

function(invar_rooms)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(CMAKE_UNITY_BUILD OFF)  # rooms name their functions alike, and a kernel is long enough
  set(dir ${CMAKE_SOURCE_DIR}/src/ops)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/*.cc)
  foreach(room ${INVAR_ROOMS})
    foreach(isa ${INVAR_ISAS})
      set(file ${dir}/${room}/cpu_${isa}.cc)
      if(NOT EXISTS ${file})
        set(file ${dir}/${room}/cpu.cc)
      endif()
      if(EXISTS ${file} AND NOT room IN_LIST INVAR_REFERENCE_ROOMS)
        add_library(invar_${room}_${isa} OBJECT ${file})
        target_include_directories(invar_${room}_${isa} PRIVATE ${CMAKE_SOURCE_DIR}/src)
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
      # The operations with rows there, best extension first.
      set(listed ${dir}/${room}/cpu/extension_rows.h)
      file(STRINGS ${listed} rows REGEX "^const CpuKernel INVAR_ROW_OF")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${listed})
      if(NOT rows)
        message(FATAL_ERROR "${listed} has no rows")
      endif()
      foreach(extension ${INVAR_ISA_EXTENSIONS_${isa}})
        add_library(invar_${room}_${extension} OBJECT ${file})
        target_include_directories(invar_${room}_${extension} PRIVATE ${CMAKE_SOURCE_DIR}/src)
        string(TOUPPER ${isa} ISA)
        string(TOUPPER ${extension} EXTENSION)
        target_compile_definitions(invar_${room}_${extension} PRIVATE
                                   INVAR_ISA="${extension}" INVAR_ISA_NS=${extension} INVAR_ISA_${ISA}=1
                                   INVAR_EXTENSION_${EXTENSION}=1)
        target_compile_options(invar_${room}_${extension} PRIVATE
                               ${INVAR_ISA_FLAGS_${isa}} ${INVAR_ISA_EXTENSION_FLAGS_${extension}})
        list(APPEND sources $<TARGET_OBJECTS:invar_${room}_${extension}>)
        foreach(row ${rows})
          string(REGEX REPLACE "^[^(]*\\(([a-z0-9_]+)\\).*" "\\1" op "${row}")
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
        target_include_directories(invar_${room}_cuda PRIVATE ${CMAKE_SOURCE_DIR}/src)
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
        target_include_directories(invar_${room}_sm90a PRIVATE ${CMAKE_SOURCE_DIR}/src)
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
  target_include_directories(invar_ops PRIVATE ${CMAKE_BINARY_DIR}/generated/ops)
  get_target_property(type invar_base TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    target_link_libraries(invar_base INTERFACE invar_opset)
  else()
    target_link_libraries(invar_base PUBLIC invar_opset)
  endif()
  invar_tests(ops "${tests}")
endfunction()
