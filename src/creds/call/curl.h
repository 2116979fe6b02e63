/* libcurl, which only fetches of tokens use, each on the thread of its fetch. Another thread only wakes a fetch, to
 * stop it. Included instead of libcurl's header; tc_curl has the functions.
 *
 * The libraries, the command and the tests hold curl_loaded.c, which loads libcurl with the first fetch. With
 * TORC_LATE_LOADING off the libraries hold curl_linked.c and are linked against libcurl. */
#ifndef TC_CREDS_CALL_CURL_H
#define TC_CREDS_CALL_CURL_H

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

/* Every function that is used. */
#define TC_CURL_FUNCTIONS(X)                                                                                           \
    X(curl_easy_cleanup)                                                                                               \
    X(curl_easy_getinfo)                                                                                               \
    X(curl_easy_init)                                                                                                  \
    X(curl_easy_setopt)                                                                                                \
    X(curl_easy_strerror)                                                                                              \
    X(curl_global_init)                                                                                                \
    X(curl_multi_add_handle)                                                                                           \
    X(curl_multi_cleanup)                                                                                              \
    X(curl_multi_info_read)                                                                                            \
    X(curl_multi_init)                                                                                                 \
    X(curl_multi_perform)                                                                                              \
    X(curl_multi_poll)                                                                                                 \
    X(curl_multi_remove_handle)                                                                                        \
    X(curl_multi_wakeup)                                                                                               \
    X(curl_slist_append)                                                                                               \
    X(curl_slist_free_all)

#define TC_CURL_MEMBER(name) __typeof__(name) *name;
struct tc_curl {
    TC_CURL_FUNCTIONS(TC_CURL_MEMBER)
};
#undef TC_CURL_MEMBER

/* Set from the start in curl_linked.c, and filled by tc_curl_find in curl_loaded.c. Usable after tc_curl_find returned
 * true. */
extern struct tc_curl tc_curl;

/* Makes tc_curl usable. Returns false, and the reason in `why`, when libcurl cannot be loaded. Called once. */
bool tc_curl_find(char *why, size_t why_bytes);

#endif
