#include <pthread.h>

#define TC_OPENSSL_ITSELF
#include "base/dlopen_note.h"
#include "base/library.h"
#include "tls/openssl.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* Loading libssl also loads libcrypto, and dlsym on libssl finds the functions of both. */
#ifdef OPENSSL_SHLIB_VERSION
#define FILE_NAME "libssl.so." TEXT(OPENSSL_SHLIB_VERSION)
#else
#define FILE_NAME "libssl.so." SHLIB_VERSION_NUMBER
#endif

TC_DLOPEN_NOTE("tls", "TLS credentials, and keys of call credentials", "recommended", "\"" FILE_NAME "\"");

struct tc_openssl tc_openssl;
static char why[512]; /* the reason why OpenSSL cannot be loaded; "": it was loaded */

static void openssl_load(void)
{
#define NAME(name) #name,
    static const char *const files[] = {FILE_NAME, NULL}, *const names[] = {TC_OPENSSL_FUNCTIONS(NAME) NULL};
#undef NAME
    _Static_assert(sizeof(names) == sizeof(tc_openssl) + sizeof(names[0]), "a name for each function");
    if (tc_library_load("OpenSSL", files, names, (void **)&tc_openssl, why, sizeof(why)) == 0)
        tc_openssl_init();
}

const char *tc_openssl_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, openssl_load);
    return why[0] ? why : NULL;
}
