# Writes OUT, a C array named tc_reflection_files with the bytes of the file IN.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(........................................................................................................................)" "\\1\n    " bytes "${bytes}")
file(WRITE ${OUT} "static const unsigned char tc_reflection_files[] = {\n    ${bytes}\n};\n")
