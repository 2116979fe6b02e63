# make install: headers, the libraries, pkg-config file, CMake package, the command, man pages. make uninstall removes them.
include(CMakePackageConfigHelpers)
foreach(kind ${TORC_KINDS})
  install(TARGETS torc_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS torc_json_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TORC_TESTING)
    install(TARGETS torc_testing_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
if(TARGET torc_regex AND shared IN_LIST TORC_KINDS) # libtorc.so loads it; nothing is linked against it
  install(TARGETS torc_regex LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
endif()
if(TORC_TOOLS)
  install(TARGETS torc_command protoc_gen_torc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  file(GLOB man_pages ${PROJECT_SOURCE_DIR}/docs/reference/*.1)
  install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
set(unused_headers)
if(NOT TORC_TESTING)
  set(unused_headers PATTERN testing.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/torc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
        ${unused_headers})

# Where there is Python: man pages of sections 3 and 7, from the headers and README.md, and the command's completions for shells.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND TORC_IS_TOP)
  set(man ${PROJECT_BINARY_DIR}/man)
  file(MAKE_DIRECTORY ${man})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/torc/*.h)
  add_custom_command(
    OUTPUT ${man}/man7/torc.7
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/man ${man}
    DEPENDS ${PROJECT_SOURCE_DIR}/scripts/man ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs/reference/torc.1 ${headers}
    COMMENT "Man pages"
    VERBATIM)
  add_custom_target(torc_man ALL DEPENDS ${man}/man7/torc.7)
  add_dependencies(torc_products torc_man)
  install(DIRECTORY ${man}/ DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.[37]")
endif()
if(Python3_FOUND AND TORC_TOOLS AND TORC_IS_TOP)
  set(completion ${PROJECT_BINARY_DIR}/completion)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmd/torc/*.c ${PROJECT_SOURCE_DIR}/cmd/torc/*.h)
  add_custom_command(
    OUTPUT ${completion}/torc ${completion}/_torc ${completion}/torc.fish
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/completion ${completion}
    DEPENDS ${PROJECT_SOURCE_DIR}/scripts/completion ${sources}
    COMMENT "Completions"
    VERBATIM)
  add_custom_target(torc_completion ALL DEPENDS ${completion}/torc)
  add_dependencies(torc_products torc_completion)
  install(FILES ${completion}/torc DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completion}/_torc DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completion}/torc.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# What a program that links libtorc.a needs: modules of pkg-config, with their versions, and libraries that have none.
set(TORC_STATIC_MODULES libnghttp2 libcares jansson zlib)
if(TORC_XDS)
  list(APPEND TORC_STATIC_MODULES libprotobuf-c)
endif()
if(TORC_TLS)
  list(APPEND TORC_STATIC_MODULES openssl)
endif()
if(UV_STATIC_FOUND)
  list(PREPEND TORC_STATIC_MODULES libuv-static)
else()
  list(PREPEND TORC_STATIC_MODULES libuv)
endif()
if(TORC_HTTP_CREDENTIALS AND NOT TORC_LATE_LOADING)
  list(APPEND TORC_STATIC_MODULES libcurl)
endif()
# RE2 is a library of C++: libstdc++ comes after it, for which a module has no place.
set(TORC_STATIC_LIBS -lpthread -lm)
if(TORC_REGEX)
  list(PREPEND TORC_STATIC_LIBS ${RE2_STATIC_LDFLAGS} -lstdc++)
endif()
foreach(library ${CMAKE_DL_LIBS})
  list(APPEND TORC_STATIC_LIBS -l${library})
endforeach()
if(shared IN_LIST TORC_KINDS)
  set(TORC_PC_PRIVATE .private)
else() # libtorc.a alone: every program needs them
  set(TORC_PC_PRIVATE "")
endif()
list(JOIN TORC_STATIC_MODULES " " TORC_PC_MODULES)
list(JOIN TORC_STATIC_LIBS " " TORC_PC_LIBS)

# The pkg-config file finds its prefix from where it lies, so that a staged or moved tree works.
file(RELATIVE_PATH TORC_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/torc.pc.in ${PROJECT_BINARY_DIR}/torc.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/torc-json.pc.in ${PROJECT_BINARY_DIR}/torc-json.pc @ONLY)
if(TORC_XDS) # generated code needs the functions of messages, which only a library with xDS has
  configure_file(${PROJECT_SOURCE_DIR}/cmake/torc-stubs.pc.in ${PROJECT_BINARY_DIR}/torc-stubs.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/torc-stubs.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TORC_TESTING)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/torc-testing.pc.in ${PROJECT_BINARY_DIR}/torc-testing.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/torc-testing.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(FILES ${PROJECT_BINARY_DIR}/torc.pc ${PROJECT_BINARY_DIR}/torc-json.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/torcConfig.cmake.in ${PROJECT_BINARY_DIR}/torcConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/torc
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/torcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/torcConfig.cmake ${PROJECT_BINARY_DIR}/torcConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/torcGenerate.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/torc)

if(TORC_IS_TOP)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P
                                      ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)
endif()
