# What makes the libraries smaller and costs their users nothing. test/lint/size.py holds the size of libtorc.so.

# The linker drops functions that nothing calls.
add_compile_options(-ffunction-sections -fdata-sections)

# A small client: link-time optimisation, which leaves out what gcc compiles in each file again.
if(NOT TORC_XDS AND CMAKE_BUILD_TYPE STREQUAL MinSizeRel AND CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT DEFINED CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT CMAKE_INTERPROCEDURAL_OPTIMIZATION OUTPUT why LANGUAGES C)
endif()

# Files, as paths in src, that are optimised for size in builds that are optimised for speed: no RPC, no pick and no build of a ring runs
# through them, and of an xDS update no part that grows with the number of endpoints.
set(TORC_COLD
    "api/(builtin|client_status|csds|server/(csds|health|orca|reflection))"
    "base/(file|json|library|options)"
    "channel/(create|explain|options)"
    "creds/[^/]*"
    "creds/call/(adc|http|jwt|jwt_file|jwt_sign|oauth|service_account)"
    "io/(dns|file_poll|file_watch|http_connect|listen|reuse_port)"
    "proto/(descriptor_index|json_[a-z]*|time_text|wkt)"
    "resolver/(dns|ip|local|proxy|proxy_env|registry|target|unix)"
    "server/csds_service"
    "tls/(context|identity|openssl_[a-z]*|san|verify)"
    "xds/(bootstrap|client|domain)/.*"
    "xds/lb/(override_host_config|san_matcher|tls)"
    "xds/resource/(cluster|http_filter|listener|outlier|route_action|route_config|route_match|transport_socket)_decoder"
    "xds/resource/(fault_filter|http_filter|lb_config|registry|session_filter)")

# torc_cold(SOURCE...): has those of the sources optimised for size that TORC_COLD names.
function(torc_cold)
  foreach(source ${ARGN})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src ${source})
    foreach(cold ${TORC_COLD})
      if(path MATCHES "^${cold}\\.c$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>;$<$<CONFIG:RelWithDebInfo>:-Os>")
      endif()
    endforeach()
  endforeach()
endfunction()

# Relative relocations as a bitmap (DT_RELR). The linker has to write it, and the dynamic linker to read it, as glibc's does since 2.36. The
# version GLIBC_ABI_DT_RELR has an older one refuse the library by name; a linker that leaves it out (mold 1) is not asked.
if(NOT DEFINED TORC_PACKS_RELOCATIONS)
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/relocations_probe)
  file(WRITE ${probe}.c "#include <stdio.h>\n#if !__GLIBC_PREREQ(2, 36)\n#error older\n#endif\n"
                        "static int n;\nextern int *torc_probe[];\nint *torc_probe[] = {&n, &n, &n};\n"
                        "int torc_call(void);\nint torc_call(void)\n{\n    return puts(\"\");\n}\n")
  separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}")
  if(CMAKE_SYSROOT)
    list(APPEND flags --sysroot=${CMAKE_SYSROOT})
  endif()
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${flags} -fPIC -shared -Wl,-z,pack-relative-relocs -o ${probe}.so ${probe}.c
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  set(read "")
  if(NOT failed)
    execute_process(COMMAND ${CMAKE_READELF} -dVW ${probe}.so OUTPUT_VARIABLE read ERROR_QUIET)
  endif()
  if(read MATCHES "\\(RELR\\)" AND read MATCHES "GLIBC_ABI_DT_RELR")
    set(TORC_PACKS_RELOCATIONS ON CACHE INTERNAL "libc and the linker have DT_RELR")
  else()
    set(TORC_PACKS_RELOCATIONS OFF CACHE INTERNAL "libc and the linker have DT_RELR")
  endif()
endif()
if(TORC_PACKS_RELOCATIONS AND NOT TORC_SANITIZE)
  add_link_options(-Wl,-z,pack-relative-relocs)
endif()
