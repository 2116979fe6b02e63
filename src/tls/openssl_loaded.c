#include <pthread.h>

#define TC_OPENSSL_ITSELF
#include "base/library.h"
#include "tls/openssl.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* libcrypto comes with it, and its functions are found in it. */
#define FILE_NAME "libssl.so." TEXT(OPENSSL_SHLIB_VERSION)

struct tc_openssl tc_openssl;
static char why[512];

static void load(void)
{
#define NAME(name) #name,
    static const char *const files[] = {FILE_NAME, NULL}, *const names[] = {TC_OPENSSL_FUNCTIONS(NAME) NULL};
#undef NAME
    _Static_assert(sizeof(names) == sizeof(tc_openssl) + sizeof(names[0]), "a name for each function");
    tc_library_load("OpenSSL", files, names, (void **)&tc_openssl, why, sizeof(why));
}

const char *tc_openssl_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return why[0] ? why : NULL;
}
