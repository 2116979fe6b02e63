/* The names of the world, behind tc_dns. Any thread of the world (testing/threads.h). */
#ifndef TC_TESTING_NAMES_H
#define TC_TESTING_NAMES_H

#include "io/addr.h"

/* The most addresses of one name. */
enum { TC_NAME_ADDRESSES = 64 };

/* Stores the addresses of a name, each with the port. Returns how many there are; 0: the name is not found. The caller
 * ends each with tc_addr_fini. `host` is borrowed for the call. Not called for literals. */
typedef size_t (*tc_names_fn)(const char *host, uint16_t port, struct tc_addr addrs[TC_NAME_ADDRESSES]);

/* Look-ups ask `fn` when they end, also those that are under way; NULL: no name is found. Look-ups that begin from now
 * on take a random time below delay_ms; 0: no time. */
void tc_names_look_up_in(tc_names_fn fn, uint64_t delay_ms);

#endif
