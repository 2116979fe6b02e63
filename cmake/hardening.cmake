# TORC_HARDEN makes a fault in the code harder to use for an attack. docs/evidence/performance.md has the cost.
option(TORC_HARDEN "Stack protector, FORTIFY, RELRO with BIND_NOW, stack clash protection, CET or BTI, PIE" ON)
if(NOT TORC_HARDEN)
  return()
endif()
include(CheckCCompilerFlag)

# BIND_NOW binds every symbol at the start, so that calls need no stubs (-fno-plt).
foreach(flag -fstack-protector-strong -fstack-clash-protection -fno-plt)
  string(MAKE_C_IDENTIFIER "TORC_HAS${flag}" has)
  check_c_compiler_flag(${flag} ${has})
  if(${has})
    add_compile_options(${flag})
  endif()
endforeach()

# libc's checks need an optimising compiler. Sanitizers have checks of their own.
if(NOT TORC_SANITIZE AND NOT TORC_FUZZ AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()

# CET and BTI protect a library only when every object has them, the compiler's own start files included: the linker then
# marks the library. Without the mark the instructions would only take time.
foreach(flag -fcf-protection=full -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "TORC_MARKS${flag}" marks)
  if(NOT DEFINED ${marks})
    set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/harden_probe)
    file(WRITE ${probe}.c "int torc_probe(void);\nint torc_probe(void)\n{\n    return 0;\n}\n")
    execute_process(COMMAND ${CMAKE_C_COMPILER} ${flag} -shared -fPIC -o ${probe}.so ${probe}.c
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    set(notes "")
    if(NOT failed)
      execute_process(COMMAND ${CMAKE_READELF} -nW ${probe}.so OUTPUT_VARIABLE notes ERROR_QUIET)
    endif()
    if(notes MATCHES "IBT|BTI")
      set(${marks} ON CACHE INTERNAL "the linker marks a library that is compiled with ${flag}")
    else()
      set(${marks} OFF CACHE INTERNAL "the linker marks a library that is compiled with ${flag}")
    endif()
  endif()
  if(${marks})
    add_compile_options(${flag})
  endif()
endforeach()

add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
include(CheckPIESupported)
if(TORC_REGEX)
  check_pie_supported(LANGUAGES C CXX)
else()
  check_pie_supported(LANGUAGES C)
endif()
