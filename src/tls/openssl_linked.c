#include <pthread.h>

#define TC_OPENSSL_ITSELF
#include "tls/openssl.h"

#define MEMBER(name) .name = name,
struct tc_openssl tc_openssl = {TC_OPENSSL_FUNCTIONS(MEMBER)};
#undef MEMBER

const char *tc_openssl_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, tc_openssl_init);
    return NULL;
}
