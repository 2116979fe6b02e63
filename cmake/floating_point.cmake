# Rings are computed in doubles, and each client of a mesh must get the same (gRFC A42). The x87 of old 32-bit x86 computes with more
# bits than a double has; SSE2 does not.
set(probe "#include <float.h>\n#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1\n#error more bits\n#endif\nint main(void) { return 0; }\n")
check_c_source_compiles("${probe}" TORC_PLAIN_DOUBLES)
if(NOT TORC_PLAIN_DOUBLES)
  set(CMAKE_REQUIRED_FLAGS "-msse2 -mfpmath=sse")
  check_c_source_compiles("${probe}" TORC_PLAIN_DOUBLES_BY_SSE2)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT TORC_PLAIN_DOUBLES_BY_SSE2)
    message(FATAL_ERROR "This compiler computes doubles with more bits than they have: rings would differ from those of other clients")
  endif()
  add_compile_options(-msse2 -mfpmath=sse)
endif()
