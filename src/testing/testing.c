/* The body of torc/testing.h: the world of the process as a handle, with names, faults and a control plane.
 *
 * `here` is the handle while there is a world. The handle owns names, functions of torc_testing_after and the control
 * plane; the other files of this folder have the rest of the world in variables of the process.
 *
 * Functions that turn the world (world_check_turn) are refused with TORC_EDEADLK inside a turn of a loop, on threads of
 * pools, and inside `done` of torc_testing_run_until. On a thread of a pool torc_testing_advance sleeps instead.
 * torc_testing_free is refused inside a turn of a loop, inside a step of the world (in a function of torc_testing_after
 * or on a thread of a pool, for example), inside `done`, and inside another torc_testing_free.
 *
 * Functions that change something (a host, a name, resources) do not turn the world. They may be called on the world's
 * thread and on threads of pools, in callbacks too. */
#include <torc/testing.h>

#include <dlfcn.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/vec.h"
#include "io/addr.h"
#include "io/loop.h"
#include "testing/blocking.h"
#include "testing/names.h"
#include "testing/net.h"
#include "testing/process.h"
#include "testing/resources.h"
#include "testing/seams.h"
#include "testing/threads.h"
#include "testing/world.h"

enum { MOST_DELAY_US = 60000000, BUFFER_BYTES = 1 << 18 };
/* Times are at most 2^42 ms, some 139 years: the world counts nanoseconds in 64 bits. */
#define MOST_MS (INT64_C(1) << 42)

/* A name of torc_testing_set_name with its `n` addresses. */
struct name {
    char *host;
    size_t n;
    struct tc_addr addrs[TC_NAME_ADDRESSES];
};

/* A function of torc_testing_after. */
struct after {
    struct tc_world_event event;
    struct tc_link link;
    void (*fn)(void *arg);
    void *arg;
};

struct torc_testing {
    TC_VEC(struct name *) names;    /* owned */
    struct tc_link afters;          /* struct after that wait; owned */
    struct tc_resources *resources; /* owned; NULL: no control plane yet */
    bool ending, asking;            /* inside torc_testing_free; inside `done` of torc_testing_run_until */
};

static torc_testing *here;

/* Returns 0 if the caller may use the world, else the code of the public function. */
static int world_check(const torc_testing *w)
{
    if (!w || w != here)
        return TORC_EINVAL;
    return tc_blocking_is_in() ? 0 : TORC_ESTATE;
}

/* world_check for a function that turns the world. */
static int world_check_turn(const torc_testing *w)
{
    int rc = world_check(w);
    return rc == 0 && (tc_world_in_turn() || tc_world_thread_here() || w->asking) ? TORC_EDEADLK : rc;
}

/* --- names --- */

static void name_free(struct name *name)
{
    for (size_t i = 0; i < name->n; i++)
        tc_addr_fini(&name->addrs[i]);
    tc_free(name->host);
    tc_free(name);
}

/* Returns the place of the name in w->names; w->names.len: the name is not set. Ignores case. */
static size_t name_index(const torc_testing *w, const char *host)
{
    size_t i = 0;
    while (i < w->names.len && strcasecmp(w->names.data[i]->host, host) != 0)
        i++;
    return i;
}

/* The tc_names_fn of the world. "localhost" is 127.0.0.1 unless the test has set it. */
static size_t name_look_up(const char *host, uint16_t port, struct tc_addr addrs[TC_NAME_ADDRESSES])
{
    size_t at = name_index(here, host);
    if (at == here->names.len)
        return strcasecmp(host, "localhost") == 0 && tc_addr_from_ip(&addrs[0], tc_slice_str("127.0.0.1"), port) == 0;
    const struct name *name = here->names.data[at];
    for (size_t i = 0; i < name->n; i++) {
        addrs[i] = tc_addr_ref(&name->addrs[i]);
        if (tc_addr_family(&addrs[i]) == AF_INET)
            addrs[i].sa.in.sin_port = htons(port);
        else
            addrs[i].sa.in6.sin6_port = htons(port);
    }
    return name->n;
}

/* Reads "10.0.0.1,10.0.0.2" into the name. Returns false if it is not a list of 1 to TC_NAME_ADDRESSES addresses. */
static bool name_read(struct name *name, const char *addresses)
{
    for (const char *at = addresses;; at++) {
        size_t len = strcspn(at, ",");
        if (name->n == TC_NAME_ADDRESSES || tc_addr_from_ip(&name->addrs[name->n], tc_slice_of(at, len), 0) != 0)
            return false;
        name->n++;
        at += len;
        if (!*at)
            return true;
    }
}

int torc_testing_set_name(torc_testing *w, const char *host, const char *addresses)
{
    int rc = world_check(w);
    if (rc != 0)
        return rc;
    if (!host || !*host)
        return TORC_EINVAL;
    struct name *name = NULL;
    if (addresses) {
        name = TC_NEW(struct name);
        name->host = tc_strdup(host);
        if (!name_read(name, addresses)) {
            name_free(name);
            return TORC_EINVAL;
        }
    }
    size_t at = name_index(w, host);
    if (at < w->names.len) {
        name_free(w->names.data[at]);
        tc_vec_remove(&w->names, at);
    }
    if (name)
        *tc_vec_push(&w->names) = name;
    return 0;
}

/* --- the life of a world --- */

static const char *environment(const char *name)
{
    return strcmp(name, "GRPC_XDS_BOOTSTRAP_CONFIG") == 0 ? tc_resources_bootstrap() : NULL;
}

/* Returns false if the program's calls reach another library than this one. This library's own calls of public
 * functions would go there, too. */
static bool is_first(void)
{
    Dl_info other, own;
    const void *found = dlsym(RTLD_DEFAULT, "torc_runtime_new");
    return !found || !dladdr(found, &other) || !dladdr((const void *)(uintptr_t)is_first, &own) ||
           other.dli_fbase == own.dli_fbase;
}

torc_testing *torc_testing_new(uint64_t seed, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    if (here || !is_first()) {
        tc_error_set(error, TORC_ESTATE, TORC_LAYER_API,
                     here ? "there is a world: torc_testing_free ends it"
                          : "the program is linked with libtorc before libtorc-testing: its calls go there");
        return NULL;
    }
    here = TC_NEW(torc_testing);
    tc_list_init(&here->afters);
    tc_blocking_begin();
    tc_world_begin(seed);
    tc_net_begin(&(struct tc_net_options){.buffer_bytes = BUFFER_BYTES});
    tc_names_look_up_in(name_look_up, 0);
    tc_world_set_environment(environment);
    return here;
}

/* Frees `after`, whether or not its event still waits, and calls its function. */
static void after_run(struct after *after)
{
    void (*fn)(void *arg) = after->fn;
    void *arg = after->arg;
    tc_world_event_stop(&after->event);
    tc_list_remove(&after->link);
    tc_free(after);
    fn(arg);
}

int torc_testing_free(torc_testing *w)
{
    if (!w)
        return 0;
    int rc = world_check(w);
    if (rc != 0)
        return rc;
    if (tc_world_in_step() || tc_world_in_turn() || w->asking || w->ending)
        return TORC_EDEADLK;
    if (tc_world_loops() > (size_t)tc_process_has_default() + tc_resources_loops(w->resources))
        return TORC_ESTATE;
    w->ending = true;
    while (!tc_list_empty(&w->afters))
        after_run(TC_CONTAINER_OF(w->afters.next, struct after, link));
    tc_process_end();
    while (tc_world_threads() > 0) /* the waits of handlers have ended, or end as time passes */
        tc_blocking_step();
    tc_resources_free(w->resources);
    tc_world_set_environment(NULL);
    tc_names_look_up_in(NULL, 0);
    for (size_t i = 0; i < w->names.len; i++)
        name_free(w->names.data[i]);
    tc_vec_fini(&w->names);
    tc_net_end();
    tc_world_end();
    here = NULL;
    tc_free(w);
    return 0;
}

/* --- time --- */

int torc_testing_advance(torc_testing *w, int64_t ms)
{
    int rc = world_check(w);
    if (rc == 0 && (ms < 0 || ms > MOST_MS))
        rc = TORC_EINVAL;
    uint64_t end_ns = tc_world_now_ns() + (uint64_t)ms * TC_NS_PER_MS;
    if (rc == 0 && tc_world_thread_here()) { /* the world goes on meanwhile */
        tc_world_thread_wait(NULL, end_ns);
        return 0;
    }
    rc = rc == 0 ? world_check_turn(w) : rc;
    if (rc == 0)
        tc_world_run_until(end_ns);
    return rc;
}

int torc_testing_run_until_idle(torc_testing *w)
{
    int rc = world_check_turn(w);
    if (rc != 0)
        return rc;
    return tc_world_run_until_idle() ? 0 : TORC_ELIMIT;
}

/* Returns what done(arg) returns. Inside `done`, functions of this file that turn or end the world are refused. */
static int ask(torc_testing *w, int (*done)(void *arg), void *arg)
{
    w->asking = true;
    int rc = done(arg);
    w->asking = false;
    return rc;
}

int torc_testing_run_until(torc_testing *w, int (*done)(void *arg), void *arg, int64_t limit_ms)
{
    int rc = world_check_turn(w);
    if (rc != 0)
        return rc;
    if (!done || limit_ms < 0 || limit_ms > MOST_MS)
        return TORC_EINVAL;
    uint64_t end_ns = tc_world_now_ns() + (uint64_t)limit_ms * TC_NS_PER_MS;
    while (!ask(w, done, arg))
        if (!tc_world_step(end_ns)) {
            tc_world_run_until(end_ns);
            return TORC_ETIMEDOUT;
        }
    return 0;
}

static void after_on_event(struct tc_world_event *event)
{
    after_run(TC_CONTAINER_OF(event, struct after, event));
}

int torc_testing_after(torc_testing *w, int64_t ms, void (*fn)(void *arg), void *arg)
{
    int rc = world_check(w);
    if (rc != 0)
        return rc;
    if (!fn || ms < 0 || ms > MOST_MS)
        return TORC_EINVAL;
    if (w->ending)
        return TORC_ECLOSED;
    struct after *after = TC_NEW(struct after);
    after->fn = fn;
    after->arg = arg;
    tc_world_event_init(&after->event, after_on_event);
    tc_list_append(&w->afters, &after->link);
    tc_world_event_at(&after->event, tc_world_now_ns() + (uint64_t)ms * TC_NS_PER_MS);
    return 0;
}

/* --- the network --- */

/* Returns true for an address that a server listens on and nobody dials. */
static bool is_wildcard(const struct tc_addr *addr)
{
    int family = tc_addr_family(addr);
    return (family == AF_INET && addr->sa.in.sin_addr.s_addr == htonl(INADDR_ANY)) ||
           (family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&addr->sa.in6.sin6_addr));
}

/* Checks the world and the address. Returns 0 and stores the address as the network spells it, which the caller frees
 * with tc_free; or returns the code of the public function. */
static int host_text(const torc_testing *w, const char *address, char **text)
{
    struct tc_addr addr;
    int rc = world_check(w);
    if (rc != 0)
        return rc;
    if (!address || tc_addr_parse(&addr, tc_slice_str(address)) != 0)
        return TORC_EINVAL;
    if (is_wildcard(&addr))
        rc = TORC_EINVAL;
    else
        *text = tc_addr_text(&addr);
    tc_addr_fini(&addr);
    return rc;
}

int torc_testing_set_host(torc_testing *w, const char *address, int state)
{
    char *text;
    if (state < TORC_TESTING_UP || state > TORC_TESTING_SILENT)
        return TORC_EINVAL;
    int rc = host_text(w, address, &text);
    if (rc != 0)
        return rc;
    static const enum tc_host_mode modes[] = {TC_HOST_UP, TC_HOST_REFUSES, TC_HOST_SILENT};
    tc_host_set(text, modes[state]);
    if (state == TORC_TESTING_SILENT)
        tc_host_break(text, true);
    tc_free(text);
    return 0;
}

int torc_testing_cut(torc_testing *w, const char *address)
{
    char *text;
    int rc = host_text(w, address, &text);
    if (rc != 0)
        return rc;
    rc = (int)tc_host_break(text, false);
    tc_free(text);
    return rc;
}

int torc_testing_stall(torc_testing *w, const char *address, int64_t ms)
{
    char *text;
    if (ms < 0 || ms > MOST_MS)
        return TORC_EINVAL;
    int rc = host_text(w, address, &text);
    if (rc != 0)
        return rc;
    rc = (int)tc_host_stall(text, tc_world_now_ns() + (uint64_t)ms * TC_NS_PER_MS);
    tc_free(text);
    return rc;
}

int torc_testing_set_delay(torc_testing *w, int64_t delay_us)
{
    int rc = world_check(w);
    if (rc == 0 && (delay_us < 0 || delay_us > MOST_DELAY_US))
        rc = TORC_EINVAL;
    if (rc == 0)
        tc_net_set_delay((uint64_t)delay_us);
    return rc;
}

/* --- the control plane --- */

int torc_testing_xds_put(torc_testing *w, const char *text, torc_error **error)
{
    if (tc_error_pending(error))
        return torc_error_code(*error);
    int rc = world_check(w);
    const char *why = !w                  ? "world: it is NULL"
                      : rc == TORC_EINVAL ? "world: it has ended"
                      : rc != 0           ? "world: it belongs to another thread"
                      : !text             ? "text: it is NULL"
                                          : NULL;
    if (why) {
        tc_error_set(error, rc ? rc : TORC_EINVAL, TORC_LAYER_API, "%s", why);
        return rc ? rc : TORC_EINVAL;
    }
    if (!w->resources)
        w->resources = tc_resources_new();
    return tc_resources_put(w->resources, text, error);
}

int torc_testing_xds_remove(torc_testing *w, const char *type_url, const char *name)
{
    int rc = world_check(w);
    if (rc == 0 && (!type_url || !name))
        rc = TORC_EINVAL;
    if (rc == 0)
        rc = w->resources ? tc_resources_remove(w->resources, type_url, name) : TORC_ENOTFOUND;
    return rc;
}

const char *torc_testing_xds_address(const torc_testing *w)
{
    return world_check(w) == 0 ? TC_RESOURCES_ADDRESS : NULL;
}
