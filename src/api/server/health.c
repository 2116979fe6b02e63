/* grpc.health.v1 as handlers of a server: Check, List, Watch.
 *
 * Services and watchers are under one mutex. A watcher is a call of Watch: it is sent each change of its service, but
 * while an earlier status is unwritten, the newest status is sent by on_writable later. The mutex is taken before the
 * runtime's lock, never while that lock is held: events are called without that lock.
 *
 * Handlers and events run on the loop of their call, torc_health_set and torc_health_shutdown on any thread. When the
 * server begins to stop, the home's loop calls torc_health_shutdown. A watcher ends by on_cancel alone, which takes the
 * watcher off the list and finishes the call; the event `release` then frees the watcher.
 *
 * torc_health is reference-counted: by the application's handle, the server's three methods (until their release) and
 * each watcher. In a child of a fork the application's functions leave it alone: a thread of the parent may have locked
 * the mutex. */
#include <torc/health.h>

#include <pthread.h>

#include "api/server/call_object.h"
#include "base/buf.h"
#include "base/fork.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/thread.h"
#include "proto/wire.h"

enum {
    SERVICE_UNKNOWN = 3,
    NEVER = -1, /* a watcher has been sent nothing */
    MAX_LISTED = 100,
    MAX_NAME = 1024,    /* bytes, of torc_health_set */
    MAX_REQUEST = 4096, /* bytes */
};

#define METHOD(name) "/grpc.health.v1.Health/" name

struct service {
    UT_hash_handle hh;
    int status;
    char name[];
};

struct watcher {
    struct tc_link link;    /* under the mutex */
    torc_health *health;    /* a reference */
    torc_server_call *call; /* the handle, until on_cancel */
    int sent;               /* under the mutex: the last status, or NEVER */
    size_t name_len;
    char name[]; /* not NUL-terminated */
};

struct torc_health {
    struct tc_ref ref;
    unsigned generation; /* tc_fork_generation when the service was made */
    pthread_mutex_t mutex;
    /* Under the mutex: */
    struct service *services;
    struct tc_link watchers;
    bool over; /* all services are NOT_SERVING for good */
};

static void health_unref(torc_health *h)
{
    if (!tc_ref_dec(&h->ref))
        return;
    struct service *s, *next;
    HASH_ITER(hh, h->services, s, next)
    {
        HASH_DEL(h->services, s);
        tc_free(s);
    }
    pthread_mutex_destroy(&h->mutex);
    tc_free(h);
}

static void on_release(void *arg)
{
    health_unref(arg);
}

/* Returns the status of a service, SERVICE_UNKNOWN if nobody has set it. With the mutex held. */
static int status_of(const torc_health *h, const char *name, size_t len)
{
    const struct service *s;
    HASH_FIND(hh, h->services, name, len, s);
    return s ? s->status : SERVICE_UNKNOWN;
}

/* Writes a HealthCheckResponse, which is empty for status 0. Returns its size. */
static size_t response_write(int status, char out[2])
{
    out[0] = 1 << 3 | TC_WIRE_VARINT;
    out[1] = (char)status;
    return status ? 2 : 0;
}

/* Reads all fields. Stores the value of the last string field 1 in *name, borrowed, unless `name` is NULL. Returns
 * false if the bytes are malformed. */
static bool fields_read(struct tc_slice rest, struct tc_slice *name)
{
    struct tc_wire_field f;
    bool good = true;
    while (rest.len && (good = tc_wire_next(&rest, &f)))
        if (name && f.is_bytes && f.number == 1)
            *name = f.value;
    return good;
}

/* Stores the service's name in *name, borrowed from the request. If the request is malformed, finishes the call and
 * returns false. */
static bool request_read(torc_server_call *call, const torc_message *request, struct tc_slice *name)
{
    *name = tc_slice_of("", 0);
    if (fields_read(tc_slice_of(torc_message_data(request), torc_message_size(request)), name) && tc_utf8_valid(*name))
        return true;
    torc_server_call_finish(call, TORC_STATUS_INTERNAL, "malformed HealthCheckRequest", NULL);
    return false;
}

/* --- Check and List --- */

static void on_check(torc_server_call *call, const torc_message *request, void *arg)
{
    torc_health *h = arg;
    struct tc_slice name;
    if (!request_read(call, request, &name))
        return;
    pthread_mutex_lock(&h->mutex);
    int status = status_of(h, name.data, name.len);
    pthread_mutex_unlock(&h->mutex);
    char response[2];
    if (status == SERVICE_UNKNOWN)
        torc_server_call_finish(call, TORC_STATUS_NOT_FOUND, "unknown service", NULL);
    else
        torc_server_call_reply(call, response, response_write(status, response));
}

/* Appends an entry of HealthListResponse.statuses: the name, then a HealthCheckResponse. With the mutex held. */
static void entry_append(struct tc_buf *out, const struct service *s)
{
    struct tc_buf entry = {0};
    char response[2];
    tc_wire_append(&entry, 1, tc_slice_str(s->name));
    tc_wire_append(&entry, 2, tc_slice_of(response, response_write(s->status, response)));
    tc_wire_append(out, 1, tc_buf_slice(&entry));
    tc_buf_fini(&entry);
}

static void on_list(torc_server_call *call, const torc_message *request, void *arg)
{
    torc_health *h = arg;
    struct tc_buf out = {0};
    struct tc_slice rest = tc_slice_of(torc_message_data(request), torc_message_size(request));
    if (!fields_read(rest, NULL)) {
        torc_server_call_finish(call, TORC_STATUS_INTERNAL, "malformed HealthListRequest", NULL);
        return;
    }
    pthread_mutex_lock(&h->mutex);
    bool many = HASH_COUNT(h->services) > MAX_LISTED;
    for (const struct service *s = h->services; s && !many; s = s->hh.next)
        entry_append(&out, s);
    pthread_mutex_unlock(&h->mutex);
    if (many)
        torc_server_call_finish(call, TORC_STATUS_RESOURCE_EXHAUSTED, "the server has more than 100 services", NULL);
    else
        torc_server_call_reply(call, out.data, out.len);
    tc_buf_fini(&out);
}

/* --- Watch --- */

/* Sends the status, unless the client was sent this one last. Without room, on_writable follows. With the mutex held.
 */
static void watcher_push(struct watcher *w)
{
    char response[2];
    int status = status_of(w->health, w->name, w->name_len);
    if (status != w->sent && torc_server_call_send(w->call, response, response_write(status, response), 0, 0) == 0)
        w->sent = status;
}

static void on_writable(torc_server_call *call TC_UNUSED, void *arg)
{
    struct watcher *w = arg;
    pthread_mutex_lock(&w->health->mutex);
    watcher_push(w);
    pthread_mutex_unlock(&w->health->mutex);
}

static void on_cancel(torc_server_call *call, void *arg)
{
    struct watcher *w = arg;
    pthread_mutex_lock(&w->health->mutex);
    tc_list_remove(&w->link);
    pthread_mutex_unlock(&w->health->mutex);
    torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL);
}

static void on_watch_over(void *arg)
{
    struct watcher *w = arg;
    health_unref(w->health);
    tc_free(w);
}

static const struct torc_server_call_events watch_events = {
    TORC_SIZE(torc_server_call_events), .on_writable = on_writable, .on_cancel = on_cancel, .release = on_watch_over};

static void on_watch(torc_server_call *call, const torc_message *request, void *arg)
{
    torc_health *h = arg;
    struct tc_slice name;
    if (!request_read(call, request, &name))
        return;
    struct watcher *w = tc_malloc(sizeof(*w) + name.len);
    w->health = h;
    w->call = call;
    w->sent = NEVER;
    w->name_len = name.len;
    if (name.len)
        memcpy(w->name, name.data, name.len);
    tc_list_init(&w->link);
    tc_ref_inc(&h->ref);
    call->unwritten.room = 0; /* one status at a time waits to be written */
    /* on_writable and on_cancel run on this thread, after this function: the watcher is on the list then. */
    pthread_mutex_lock(&h->mutex);
    bool runs = torc_server_call_set_events(call, &watch_events, w) == 0;
    if (runs) {
        tc_list_append(&h->watchers, &w->link);
        watcher_push(w);
    }
    pthread_mutex_unlock(&h->mutex);
    if (!runs) {
        on_watch_over(w);
        torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL);
    }
}

/* --- the application --- */

static bool is_of_parent(const torc_health *h)
{
    return h->generation != tc_fork_generation();
}

/* `name` is copied. With the mutex held, unless `h` is being made. */
static void service_set(torc_health *h, const char *name, int status)
{
    size_t len = strlen(name);
    struct service *s;
    HASH_FIND(hh, h->services, name, len, s);
    if (!s) {
        s = tc_malloc(sizeof(*s) + len + 1);
        memcpy(s->name, name, len + 1);
        HASH_ADD_KEYPTR(hh, h->services, s->name, len, s);
    }
    s->status = status;
}

/* With the mutex held. */
static void push_all(torc_health *h)
{
    TC_LIST_FOREACH(it, &h->watchers)
    watcher_push(TC_CONTAINER_OF(it, struct watcher, link));
}

/* The server begins to stop. On the home's loop. */
static void on_stopping(void *arg)
{
    torc_health_shutdown(arg);
}

torc_health *torc_health_new(torc_server *server, torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return NULL;
    torc_health *h = TC_NEW(torc_health);
    const struct torc_handler check = {TORC_SIZE(torc_handler), .unary = on_check, .release = on_release, .arg = h},
                              list = {TORC_SIZE(torc_handler), .unary = on_list, .release = on_release, .arg = h},
                              watch = {TORC_SIZE(torc_handler), .unary = on_watch, .release = on_release, .arg = h};
    const struct tc_method_spec methods[] = {{METHOD("Check"), check, MAX_REQUEST, on_stopping},
                                             {METHOD("List"), list, MAX_REQUEST, NULL},
                                             {METHOD("Watch"), watch, MAX_REQUEST, NULL}};
    tc_ref_init(&h->ref);
    h->generation = tc_fork_generation();
    for (size_t i = 0; i < TC_ARRAY_LEN(methods); i++)
        tc_ref_inc(&h->ref);
    pthread_mutex_init(&h->mutex, NULL);
    tc_list_init(&h->watchers);
    service_set(h, "", TORC_HEALTH_SERVING);
    if (tc_api_server_add(server, methods, TC_ARRAY_LEN(methods), NULL, error) == 0)
        return h;
    for (size_t i = 0; i <= TC_ARRAY_LEN(methods); i++)
        health_unref(h);
    return NULL;
}

int torc_health_set(torc_health *h, const char *service, int status)
{
    TC_NO_CANCEL;
    size_t len = service ? strlen(service) : 0;
    if (!h || !service || len > MAX_NAME || !tc_utf8_valid(tc_slice_of(service, len)) || status < TORC_HEALTH_UNKNOWN ||
        status > TORC_HEALTH_NOT_SERVING)
        return TORC_EINVAL;
    if (is_of_parent(h))
        return TORC_EFORK;
    pthread_mutex_lock(&h->mutex);
    int rc = h->over ? TORC_ESTATE : 0;
    if (rc == 0) {
        service_set(h, service, status);
        push_all(h);
    }
    pthread_mutex_unlock(&h->mutex);
    return rc;
}

void torc_health_shutdown(torc_health *h)
{
    if (!h || is_of_parent(h))
        return;
    TC_NO_CANCEL;
    pthread_mutex_lock(&h->mutex);
    h->over = true;
    for (struct service *s = h->services; s; s = s->hh.next)
        s->status = TORC_HEALTH_NOT_SERVING;
    push_all(h);
    pthread_mutex_unlock(&h->mutex);
}

void torc_health_free(torc_health *h)
{
    if (h && !is_of_parent(h))
        health_unref(h);
}
