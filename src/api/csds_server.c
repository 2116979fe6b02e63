/* CSDS on an address of the application's choice.
 *
 * The server has a runtime of its own, whose thread does everything that a client can cause: it reads, serialises and
 * writes. The application's loop only makes a snapshot (api/csds.h) when a mail asks for it, at most one
 * at a time and a twentieth of its time (server/csds_service.h):
 *
 *   make ---mail---> on_asked, on the loop that has the xDS clients ---mail---> on_snapshot ---> tc_csds_service_made
 *
 * Either mailbox may be closed meanwhile; the snapshot is freed then. */
#include "api/csds.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/ref.h"
#include "base/status.h"
#include "io/mailbox.h"
#include "runtime/blocking.h"
#include "server/csds_service.h"
#include "server/server.h"

/* Small: the clients are people and their tools. */
enum {
    MAX_CONNECTIONS = 64,
    MAX_STREAMS = 2,
    MAX_REQUEST_BYTES = 64 * 1024,
    WINDOW_BYTES = 16 * 1024,
    WRITE_BYTES = 64 * 1024,
};

struct torc_csds {
    struct tc_csds_service service;
    struct tc_ref ref;   /* the application's, and its runtime's while the server is there */
    torc_runtime *rt;    /* a reference */
    struct tc_link link; /* the runtime's, while the server is there */
    torc_runtime *source;
    torc_runtime *own; /* the server's thread */
    struct tc_mailbox *to_source, *to_own;
    struct tc_server *server;
    char *address;
};

/* --- answers --- */

struct ask {
    struct tc_mail mail;
    torc_runtime *source;
    struct tc_mailbox *back; /* a reference */
    struct tc_csds_service *service;
    bool without_contents;
    struct tc_csds_snapshot *snapshot;
    uint64_t took_ns;
};

static void ask_free(struct tc_mail *mail)
{
    struct ask *a = TC_CONTAINER_OF(mail, struct ask, mail);
    tc_mailbox_unref(a->back);
    tc_csds_snapshot_free(a->snapshot);
    tc_free(a);
}

static void on_snapshot(struct tc_mail *mail)
{
    const struct ask *a = TC_CONTAINER_OF(mail, struct ask, mail);
    size_t bytes;
    struct tc_rstr *response =
        tc_csds_pack(&tc_csds_snapshot_response(a->snapshot)->base, tc_csds_service_max_bytes(a->service), &bytes);
    tc_csds_service_made(a->service, response, bytes, a->took_ns);
    ask_free(mail);
}

static void on_asked(struct tc_mail *mail)
{
    struct ask *a = TC_CONTAINER_OF(mail, struct ask, mail);
    uint64_t since_ns = tc_system_clock.monotonic_ns(NULL);
    a->snapshot = tc_csds_snapshot_new(a->source, a->without_contents);
    a->took_ns = tc_system_clock.monotonic_ns(NULL) - since_ns;
    a->mail.run = on_snapshot;
    tc_mailbox_send(a->back, &a->mail);
}

static void snapshot_ask(struct tc_csds_service *service, bool without_contents)
{
    torc_csds *s = TC_CONTAINER_OF(service, torc_csds, service);
    struct ask *a = TC_NEW(struct ask);
    *a = (struct ask){.mail = {.run = on_asked, .drop = ask_free},
                      .source = s->source,
                      .back = tc_mailbox_ref(s->to_own),
                      .service = service,
                      .without_contents = without_contents};
    tc_list_init(&a->mail.link);
    tc_mailbox_send(s->to_source, &a->mail);
}

/* --- the end --- */

static void csds_unref(torc_csds *s)
{
    if (!tc_ref_dec(&s->ref))
        return;
    tc_runtime_unref(s->rt);
    tc_free(s->address);
    tc_free(s);
}

static void mailbox_end(struct tc_mailbox **box)
{
    if (!*box)
        return;
    tc_mailbox_close(*box);
    tc_mailbox_unref(*box);
    *box = NULL;
}

static void on_stop_source(void *arg)
{
    mailbox_end(&((torc_csds *)arg)->to_source);
}

static void on_stop_own(void *arg)
{
    torc_csds *s = arg;
    mailbox_end(&s->to_own);
    if (s->server)
        tc_csds_service_end(&s->service);
    tc_server_free(s->server);
    s->server = NULL;
}

/* On the loop of rt, which may be ending. Waits for the loops of own and source, which never wait for rt's. */
static void csds_stop(torc_csds *s)
{
    tc_list_remove(&s->link);
    tc_runtime_do(s->own, on_stop_own, s);
    if (s->source == s->rt)
        on_stop_source(s);
    else
        tc_runtime_do(s->source, on_stop_source, s);
    torc_runtime_free(s->own);
    s->own = NULL;
    csds_unref(s);
}

struct servers {
    struct tc_link list;
};

/* The runtime ends. */
static void servers_stop(void *arg)
{
    struct servers *all = arg;
    while (!tc_list_empty(&all->list))
        csds_stop(TC_CONTAINER_OF(all->list.next, torc_csds, link));
    tc_free(all);
}

static struct servers *servers_get(torc_runtime *rt)
{
    static const char slot;
    struct servers *all = tc_runtime_extra(rt, &slot);
    if (!all) {
        all = TC_NEW(struct servers);
        tc_list_init(&all->list);
        tc_runtime_set_extra(rt, &slot, all, servers_stop);
    }
    return all;
}

/* --- the beginning --- */

struct start {
    torc_csds *server;
    const struct tc_addr *addr;
    struct tc_status error;
    int rc;
};

static void on_start_source(void *arg)
{
    torc_csds *s = arg;
    s->to_source = tc_mailbox_new(tc_runtime_loop(s->source));
}

static void on_start_own(void *arg)
{
    struct start *st = arg;
    torc_csds *s = st->server;
    struct tc_server_opts opts;
    struct tc_addr bound;
    tc_server_opts_init(&opts);
    tc_server_opts_guard(&opts, MAX_CONNECTIONS, 0); /* the service bounds what calls queue */
    opts.calls_give_way = true;
    opts.http2.no_bdp = true;
    opts.http2.limits.max_concurrent_streams = MAX_STREAMS;
    opts.http2.limits.max_receive_message_bytes = MAX_REQUEST_BYTES;
    opts.http2.limits.initial_window_bytes = WINDOW_BYTES;
    opts.http2.limits.write_bytes = WRITE_BYTES;
    s->to_own = tc_mailbox_new(tc_runtime_loop(s->own));
    s->server = tc_server_new(tc_runtime_loop(s->own), &opts);
    tc_csds_service_register(s->server, &s->service);
    st->rc = tc_server_listen(s->server, st->addr, &bound, &st->error);
    if (st->rc != 0)
        return;
    s->address = tc_addr_text(&bound);
    tc_addr_fini(&bound);
}

/* On the loop of rt. A runtime that has begun to end does not take a server. */
static void on_start(void *arg)
{
    struct start *st = arg;
    torc_csds *s = st->server;
    if ((st->rc = tc_runtime_check(s->rt)) != 0)
        return;
    s->source = tc_csds_source(s->rt);
    s->own = torc_runtime_new(NULL, NULL);
    if (!s->own) {
        st->rc = TORC_EIO;
        return;
    }
    tc_ref_inc(&s->ref);
    tc_list_append(&servers_get(s->rt)->list, &s->link);
    st->rc = tc_runtime_do(s->source, on_start_source, s);
    if (st->rc == 0) {
        int rc = tc_runtime_do(s->own, on_start_own, st);
        st->rc = rc ? rc : st->rc; /* rc: the function did not run, because the process is exiting */
    }
    if (st->rc != 0)
        csds_stop(s);
}

static torc_csds *csds_start(torc_runtime *rt, const struct tc_addr *addr, torc_error **error)
{
    torc_csds *s = TC_NEW(torc_csds);
    struct start st = {.server = s, .addr = addr};
    s->service.make = snapshot_ask;
    s->service.max_bytes = tc_runtime_csds_answer_bytes(rt);
    s->rt = tc_runtime_ref(rt);
    tc_ref_init(&s->ref);
    tc_list_init(&s->link);
    int rc = tc_runtime_do(rt, on_start, &st);
    rc = rc ? rc : st.rc;
    if (rc != 0) {
        tc_error_set(error, (enum torc_code)rc, st.error.text ? TORC_LAYER_CONNECT : TORC_LAYER_API, "%s",
                     st.error.text ? tc_status_text(&st.error) : torc_strerror(rc));
        csds_unref(s);
        s = NULL;
    }
    tc_status_fini(&st.error);
    return s;
}

torc_csds *torc_csds_serve(torc_runtime *runtime, const char *address, torc_error **error)
{
    struct tc_addr addr;
    if (tc_error_pending(error))
        return NULL;
    torc_runtime *rt = tc_runtime_or_default(runtime, "runtime", error);
    if (!rt)
        return NULL;
    if (!address || tc_addr_parse(&addr, tc_slice_str(address)) != 0) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                     "address: \"" TC_SHOWN "\" is not an address such as 127.0.0.1:0, [::1]:80 or unix:/path",
                     TC_SHOW(address ? address : ""));
        return NULL;
    }
    torc_csds *s = csds_start(rt, &addr, error);
    tc_addr_fini(&addr);
    return s;
}

const char *torc_csds_address(const torc_csds *s)
{
    return s ? s->address : NULL;
}

static void on_stop(void *arg)
{
    torc_csds *s = arg;
    if (s->own)
        csds_stop(s);
}

void torc_csds_free(torc_csds *s)
{
    if (!s)
        return;
    int rc = tc_runtime_do(s->rt, on_stop, s);
    if (rc != TORC_EFORK) /* in a child, the server is the parent's */
        csds_unref(s);
}
