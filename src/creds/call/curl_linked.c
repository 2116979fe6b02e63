#include "creds/call/curl.h"

#define MEMBER(name) .name = name,
struct tc_curl tc_curl = {TC_CURL_FUNCTIONS(MEMBER)};

bool tc_curl_find(char *why, size_t why_bytes)
{
    (void)why, (void)why_bytes;
    return true;
}
