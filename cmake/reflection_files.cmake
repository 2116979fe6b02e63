# Writes OUT, a C array named NAME (tc_reflection_files by default) with the bytes of the file IN.
if(NOT NAME)
  set(NAME tc_reflection_files)
endif()
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(........................................................................................................................)" "\\1\n    " bytes "${bytes}")
file(WRITE ${OUT} "static const unsigned char ${NAME}[] = {\n    ${bytes}\n};\n")
