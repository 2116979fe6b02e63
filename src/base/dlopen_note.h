/* ELF notes that tell packagers which libraries Torc loads with dlopen, as DT_NEEDED tells which it is linked against
 * ("dlopen() Metadata for ELF Files" of the UAPI group). `readelf -p .note.dlopen` shows them. Each file that calls
 * tc_library_load has a note; test/e2e/late_loading_test.py compares notes and loads. */
#ifndef TC_BASE_DLOPEN_NOTE_H
#define TC_BASE_DLOPEN_NOTE_H

#include <stdint.h>

/* The name is four bytes long with its NUL, so that it needs no padding. The struct's alignment pads the end of each
 * note. */
#define TC_DLOPEN_NOTE_OWNER "FDO"
#define TC_DLOPEN_NOTE_TYPE 0x407c0c0au

#define TC_DLOPEN_NOTE_JSON(feature, description, priority, sonames)                                                   \
    "[{\"soname\":[" sonames "],\"feature\":\"" feature "\",\"description\":\"" description                            \
    "\",\"priority\":\"" priority "\"}]"

/* Adds a note to the library or program that the file is linked into; at most one in a file. `sonames`: JSON strings
 * with commas between them, in the order in which they are tried; one of them suffices. `priority`: "required",
 * "recommended" or "suggested". All arguments are string literals. */
#define TC_DLOPEN_NOTE(feature, description, priority, sonames)                                                        \
    static const struct {                                                                                              \
        uint32_t name_bytes, json_bytes, type;                                                                         \
        char name[sizeof(TC_DLOPEN_NOTE_OWNER)];                                                                       \
        _Alignas(4) char json[sizeof(TC_DLOPEN_NOTE_JSON(feature, description, priority, sonames))];                   \
    } dlopen_note __attribute__((used, aligned(4), section(".note.dlopen"))) = {                                       \
        .name_bytes = sizeof(TC_DLOPEN_NOTE_OWNER),                                                                    \
        .json_bytes = sizeof(TC_DLOPEN_NOTE_JSON(feature, description, priority, sonames)),                            \
        .type = TC_DLOPEN_NOTE_TYPE,                                                                                   \
        .name = TC_DLOPEN_NOTE_OWNER,                                                                                  \
        .json = TC_DLOPEN_NOTE_JSON(feature, description, priority, sonames)}

#endif
