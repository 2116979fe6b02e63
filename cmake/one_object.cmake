# torc_one_object(OUT object... [WRAP name...]): links the objects into OUT, one object in which only the names of the public API
# are global; the names of WRAP as with the linker's --wrap. A program's own symbols then never meet Torc's internal ones, such as its copies of protobuf messages.
#
# GNU ld does it, whatever linker CMAKE_*_LINKER_FLAGS name: it resolves COMDAT groups, which another file's group of the same
# name would replace although the names in them are now local. The compiler's driver runs it, for the target's format.
find_program(TORC_BFD ld.bfd REQUIRED)
function(torc_one_object out)
  cmake_parse_arguments(O "" "" "WRAP" ${ARGN})
  set(objects ${O_UNPARSED_ARGUMENTS})
  set(wraps ${O_WRAP})
  list(TRANSFORM wraps PREPEND "-Wl,--wrap=")
  file(GENERATE OUTPUT ${out}.rsp CONTENT "\"$<JOIN:${objects},\"\n\">\"\n")
  string(REGEX MATCHALL "(^| )(-m|--target=)[^ ]+" target_flags "${CMAKE_C_FLAGS}")
  list(TRANSFORM target_flags STRIP)
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION) # machine code, which programs link without this compiler's plugin
    list(APPEND target_flags -flinker-output=nolto-rel)
  endif()
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_C_COMPILER} ${target_flags} -r -nostdlib -fuse-ld=bfd -Wl,-d,--force-group-allocation ${wraps} -o ${out}.all @${out}.rsp
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=torc_* --keep-global-symbol=!torc_regex_engine ${out}.all ${out}
    COMMAND ${CMAKE_COMMAND} -E rm ${out}.all
    DEPENDS ${objects} ${out}.rsp
    COMMENT "One object of libtorc"
    VERBATIM)
  set_source_files_properties(${out} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endfunction()
