# Adds code that is generated from .proto files to a target: protobuf-c's messages, and typed calls on Torc.
#
#   torc_generate(TARGET PROTOS file... [IMPORT_DIRS folder...] [OUT_DIR folder] [OPTIONS option...])
#
# A file is named as other files import it ("helloworld.proto", "google/rpc/status.proto"), or by its absolute path, and is looked for
# in IMPORT_DIRS (default: the current source folder), then among protoc's own (TORC_PROTOBUF_INCLUDE: "google/protobuf/timestamp.proto").
# What a file imports and uses is to be generated too, once in a program. OPTIONS are those of the plugin besides `messages`. The
# target gets the sources and the folder of the headers; it also needs torc::stubs, or what stands for it. Where the plugin of the
# package or build cannot run here (a cross build), TORC_PROTOC_GEN_TORC names one that can, of the same version.
find_program(TORC_PROTOC protoc)
find_program(TORC_PROTOC_GEN_C protoc-gen-c)
get_filename_component(torc_protoc_folder "${TORC_PROTOC}" DIRECTORY)
find_path(TORC_PROTOBUF_INCLUDE google/protobuf/timestamp.proto HINTS ${torc_protoc_folder}/../include)
mark_as_advanced(TORC_PROTOBUF_INCLUDE)

function(torc_generate target)
  cmake_parse_arguments(PARSE_ARGV 1 G "" "OUT_DIR" "PROTOS;IMPORT_DIRS;OPTIONS")
  if(NOT G_PROTOS OR G_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torc_generate: expected TARGET PROTOS file... [IMPORT_DIRS folder...] [OUT_DIR folder] [OPTIONS option...]")
  endif()
  if(NOT TORC_PROTOC OR NOT TORC_PROTOC_GEN_C)
    message(FATAL_ERROR "torc_generate: protoc and protoc-gen-c are needed (Debian: protobuf-compiler, protobuf-c-compiler)")
  endif()
  # Before 3.15 protoc asked for an option where a proto3 field is optional.
  set(protoc_options)
  execute_process(COMMAND ${TORC_PROTOC} --version OUTPUT_VARIABLE protoc_version)
  if(protoc_version MATCHES "libprotoc ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_LESS 3.15)
    set(protoc_options --experimental_allow_proto3_optional)
  endif()
  if(NOT G_OUT_DIR)
    set(G_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR}/${target}.torc)
  endif()
  if(NOT G_IMPORT_DIRS)
    set(G_IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  if(TORC_PROTOBUF_INCLUDE)
    list(APPEND G_IMPORT_DIRS ${TORC_PROTOBUF_INCLUDE})
  endif()
  set(import_options)
  foreach(folder ${G_IMPORT_DIRS})
    get_filename_component(folder ${folder} ABSOLUTE)
    list(APPEND import_options -I${folder})
    list(APPEND folders ${folder})
  endforeach()
  list(JOIN G_OPTIONS "," options)
  file(MAKE_DIRECTORY ${G_OUT_DIR})
  if(TORC_PROTOC_GEN_TORC)
    set(plugin ${TORC_PROTOC_GEN_TORC})
    set(plugin_path ${TORC_PROTOC_GEN_TORC})
  elseif(NOT TARGET torc::protoc-gen-torc)
    message(FATAL_ERROR "torc_generate: this Torc was built without protoc-gen-torc (TORC_TOOLS, TORC_XDS); TORC_PROTOC_GEN_TORC names one")
  else()
    set(plugin torc::protoc-gen-torc)
    set(plugin_path $<TARGET_FILE:torc::protoc-gen-torc>)
  endif()
  foreach(proto ${G_PROTOS})
    unset(source)
    foreach(folder ${folders})
      get_filename_component(path ${proto} ABSOLUTE BASE_DIR ${folder})
      file(RELATIVE_PATH name ${folder} ${path})
      if(NOT source AND EXISTS ${path} AND NOT name MATCHES "^\\.\\./")
        set(source ${path})
        string(REGEX REPLACE "\\.proto$" "" stem ${name})
      endif()
    endforeach()
    if(NOT source)
      list(JOIN folders ", " places)
      message(FATAL_ERROR "torc_generate: ${proto} is not in ${places}; IMPORT_DIRS says where else, and protoc's own files "
                          "(google/protobuf/) are in the folder TORC_PROTOBUF_INCLUDE (Debian: libprotobuf-dev)")
    endif()
    set(outputs ${G_OUT_DIR}/${stem}.torc.c ${G_OUT_DIR}/${stem}.torc.h ${G_OUT_DIR}/${stem}.pb-c.c ${G_OUT_DIR}/${stem}.pb-c.h)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${TORC_PROTOC} ${protoc_options} --plugin=protoc-gen-torc=${plugin_path}
              --torc_out=messages,protoc-gen-c=${TORC_PROTOC_GEN_C},${options}:${G_OUT_DIR} ${import_options} ${stem}.proto
      DEPENDS ${source} ${plugin}
      COMMENT "protoc-gen-torc ${stem}.proto"
      VERBATIM)
    target_sources(${target} PRIVATE ${outputs})
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${G_OUT_DIR}>)
endfunction()
