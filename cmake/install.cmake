# make install: headers, both libraries, pkg-config file, CMake package, the command, man pages.
include(CMakePackageConfigHelpers)
install(TARGETS torc_shared torc_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TORC_LATE_LOADING) # libtorc.so loads it; nothing is linked against it
  install(TARGETS torc_regex LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
endif()
install(TARGETS torc_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/torc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# The pkg-config file finds its prefix from where it lies, so that a staged or moved tree works.
file(RELATIVE_PATH TORC_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/torc.pc.in ${CMAKE_BINARY_DIR}/torc.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/torc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/torcConfig.cmake.in ${CMAKE_BINARY_DIR}/torcConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/torc
                              PATH_VARS CMAKE_INSTALL_FULL_LIBDIR CMAKE_INSTALL_FULL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/torcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/torcConfig.cmake ${CMAKE_BINARY_DIR}/torcConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/torc)
file(GLOB man_pages ${CMAKE_SOURCE_DIR}/docs/*.1)
if(man_pages)
  install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
