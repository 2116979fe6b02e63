#include "base/dlopen_note.h"
#include "base/library.h"
#include "creds/call/curl.h"

TC_DLOPEN_NOTE("google-default", "Access tokens over HTTP for application default credentials", "suggested",
               "\"libcurl.so.4\",\"libcurl-gnutls.so.4\"");

struct tc_curl tc_curl;

/* libcurl is never unloaded: OpenSSL underneath would not survive the unloading. */
bool tc_curl_find(char *why, size_t why_bytes)
{
#define NAME(name) #name,
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
    static const char *const names[] = {TC_CURL_FUNCTIONS(NAME) NULL};
#undef NAME
    _Static_assert(sizeof(names) == sizeof(tc_curl) + sizeof(names[0]), "a name for each function");
    return tc_library_load("libcurl", files, names, (void **)&tc_curl, why, why_bytes) == 0;
}
