#define TC_OPENSSL_ITSELF
#include "tls/openssl.h"

#define MEMBER(name) .name = name,
struct tc_openssl tc_openssl = {TC_OPENSSL_FUNCTIONS(MEMBER)};
#undef MEMBER

const char *tc_openssl_load(void)
{
    return NULL;
}
