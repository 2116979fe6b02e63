# Adds code that is generated from .proto files to a target: protobuf-c's messages, and typed calls on Torc.
#
#   torc_generate(TARGET PROTOS file... [IMPORT_DIRS folder...] [OUT_DIR folder] [OPTIONS option...])
#
# A file is named as other files import it ("helloworld.proto", "google/rpc/status.proto") and is looked for in IMPORT_DIRS
# (default: the current source folder). What a file imports and uses is to be generated too, once in a program. OPTIONS are those
# of the plugin besides `messages`. The target gets the sources and the folder of the headers; it also needs torc::stubs, or what
# stands for it.
find_program(TORC_PROTOC protoc)
find_program(TORC_PROTOC_GEN_C protoc-gen-c)

function(torc_generate target)
  cmake_parse_arguments(PARSE_ARGV 1 G "" "OUT_DIR" "PROTOS;IMPORT_DIRS;OPTIONS")
  if(NOT G_PROTOS OR G_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "torc_generate: expected TARGET PROTOS file... [IMPORT_DIRS folder...] [OUT_DIR folder] [OPTIONS option...]")
  endif()
  if(NOT TORC_PROTOC OR NOT TORC_PROTOC_GEN_C)
    message(FATAL_ERROR "torc_generate: protoc and protoc-gen-c are needed (Debian: protobuf-compiler, protobuf-c-compiler)")
  endif()
  if(NOT G_OUT_DIR)
    set(G_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR}/${target}.torc)
  endif()
  if(NOT G_IMPORT_DIRS)
    set(G_IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  set(import_options)
  foreach(folder ${G_IMPORT_DIRS})
    get_filename_component(folder ${folder} ABSOLUTE)
    list(APPEND import_options -I${folder})
    list(APPEND folders ${folder})
  endforeach()
  list(JOIN G_OPTIONS "," options)
  file(MAKE_DIRECTORY ${G_OUT_DIR})
  foreach(proto ${G_PROTOS})
    unset(source)
    foreach(folder ${folders})
      if(NOT source AND EXISTS ${folder}/${proto})
        set(source ${folder}/${proto})
      endif()
    endforeach()
    if(NOT source)
      message(FATAL_ERROR "torc_generate: ${proto} is not in ${G_IMPORT_DIRS}")
    endif()
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(outputs ${G_OUT_DIR}/${stem}.torc.c ${G_OUT_DIR}/${stem}.torc.h ${G_OUT_DIR}/${stem}.pb-c.c ${G_OUT_DIR}/${stem}.pb-c.h)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${TORC_PROTOC} --plugin=protoc-gen-torc=$<TARGET_FILE:torc::protoc-gen-torc>
              --torc_out=messages,protoc-gen-c=${TORC_PROTOC_GEN_C},${options}:${G_OUT_DIR} ${import_options} ${proto}
      DEPENDS ${source} torc::protoc-gen-torc
      COMMENT "protoc-gen-torc ${proto}"
      VERBATIM)
    target_sources(${target} PRIVATE ${outputs})
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${G_OUT_DIR}>)
endfunction()
