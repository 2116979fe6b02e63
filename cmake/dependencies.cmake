# The libraries that Torc stands on, each as an imported target PkgConfig::NAME (xxHash and uthash are header only). The versions
# are the oldest ones that Torc was built and tested with (docs/platforms.md).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
set_target_properties(Threads::Threads PROPERTIES IMPORTED_GLOBAL TRUE)

# torc_library(NAME module...): GLOBAL, since a project of which Torc is a part links libtorc.a outside of this directory.
macro(torc_library name)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET GLOBAL ${ARGN})
endmacro()
torc_library(UV libuv>=1.40)
torc_library(NGHTTP2 libnghttp2>=1.43)
torc_library(CARES libcares>=1.17)
torc_library(PROTOBUFC libprotobuf-c>=1.3.3)
torc_library(JANSSON jansson>=2.13)
torc_library(ZLIB zlib)
torc_library(OPENSSL openssl>=1.1.1)
torc_library(RE2 re2)
# libtorc loads it when a token is first fetched (creds/call/curl.h).
torc_library(CURL libcurl>=7.74)
if(TORC_TOOLS OR TORC_TESTS)
  torc_library(YAML yaml-0.1)
endif()
find_program(PROTOC_C protoc-c REQUIRED)

# Debian's libuv.pc does not name the static library.
pkg_check_modules(UV_STATIC QUIET libuv-static)

include(CheckIncludeFile)
foreach(header xxhash.h uthash.h)
  string(MAKE_C_IDENTIFIER "TORC_HAS_${header}" has)
  check_include_file(${header} ${has})
  if(NOT ${has})
    message(FATAL_ERROR "<${header}> is missing: scripts/install-deps installs it")
  endif()
endforeach()
