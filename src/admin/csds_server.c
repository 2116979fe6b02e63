/* CSDS on an address of the application's choice, on its runtime's loop. */
#include "admin/csds.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/ref.h"
#include "channel/runtime.h"
#include "server/csds_service.h"
#include "server/grpc_server.h"

/* Those who ask are people and their tools. */
#define MAX_CONNECTIONS 64

struct torc_csds {
    struct tc_csds_service service;
    struct tc_ref ref;   /* the application's, and its runtime's while the server is there */
    torc_runtime *rt;    /* a reference */
    struct tc_link link; /* the runtime's */
    struct tc_server *server;
    char *address;
};

/* --- the runtime's end ends them --- */

struct servers {
    struct tc_link list;
};

static void unref(torc_csds *s)
{
    if (!tc_ref_dec(&s->ref))
        return;
    tc_runtime_unref(s->rt);
    tc_free(s->address);
    tc_free(s);
}

static void stop(torc_csds *s)
{
    tc_list_remove(&s->link);
    tc_server_free(s->server);
    s->server = NULL;
    unref(s);
}

static void stop_all(void *arg)
{
    struct servers *all = arg;
    while (!tc_list_empty(&all->list))
        stop(TC_CONTAINER_OF(all->list.next, torc_csds, link));
    tc_free(all);
}

static struct servers *servers_of(torc_runtime *rt)
{
    static const char slot;
    struct servers *all = tc_runtime_extra(rt, &slot);
    if (!all) {
        all = TC_NEW(struct servers);
        tc_list_init(&all->list);
        tc_runtime_set_extra(rt, &slot, all, stop_all);
    }
    return all;
}

/* --- one --- */

static void make(struct tc_csds_service *service, bool without_contents, struct tc_buf *out)
{
    tc_csds_make(TC_CONTAINER_OF(service, torc_csds, service)->rt, without_contents, out);
}

struct start {
    torc_csds *server;
    const struct tc_addr *addr;
    struct tc_status error;
    int rc;
};

/* On the loop. A runtime that has begun to end takes no more. */
static void on_start(void *arg)
{
    struct start *st = arg;
    torc_csds *s = st->server;
    struct tc_server_opts opts;
    struct tc_addr bound;
    if ((st->rc = tc_runtime_check(s->rt)) != 0)
        return;
    tc_server_opts_init(&opts);
    opts.max_connections = MAX_CONNECTIONS;
    s->server = tc_server_new(tc_runtime_loop(s->rt), &opts);
    tc_csds_service_register(s->server, &s->service);
    st->rc = tc_server_listen(s->server, st->addr, &bound, &st->error);
    if (st->rc != 0) {
        tc_server_free(s->server);
        return;
    }
    s->address = tc_addr_text(&bound);
    tc_addr_fini(&bound);
    tc_ref_inc(&s->ref);
    tc_list_append(&servers_of(s->rt)->list, &s->link);
}

static torc_csds *start(torc_runtime *rt, const struct tc_addr *addr, char **why)
{
    torc_csds *s = TC_NEW(torc_csds);
    struct start st = {.server = s, .addr = addr};
    s->service.make = make;
    s->rt = tc_runtime_ref(rt);
    tc_ref_init(&s->ref);
    tc_list_init(&s->link);
    int rc = tc_runtime_do(rt, on_start, &st);
    rc = rc ? rc : st.rc;
    if (rc != 0) {
        *why = tc_strdup(st.error.text ? tc_status_text(&st.error) : torc_strerror(rc));
        unref(s);
        s = NULL;
    }
    tc_status_fini(&st.error);
    return s;
}

torc_csds *torc_csds_serve(torc_runtime *runtime, const char *address, char **why)
{
    torc_runtime *rt = runtime ? runtime : torc_runtime_default();
    torc_csds *s = NULL;
    struct tc_addr addr;
    char *reason = NULL;
    if (!rt) {
        reason = tc_strdup("runtime: the system refuses one");
    } else if (!address || tc_addr_parse(&addr, tc_slice_str(address)) != 0) {
        reason = tc_asprintf("'%s' is no address such as 127.0.0.1:0, [::1]:80 or unix:/path", address ? address : "");
    } else {
        s = start(rt, &addr, &reason);
        tc_addr_fini(&addr);
    }
    if (why)
        *why = reason;
    else
        tc_free(reason);
    return s;
}

const char *torc_csds_address(const torc_csds *s)
{
    return s ? s->address : NULL;
}

static void on_stop(void *arg)
{
    torc_csds *s = arg;
    if (s->server)
        stop(s);
}

void torc_csds_free(torc_csds *s)
{
    if (!s)
        return;
    int rc = tc_runtime_do(s->rt, on_stop, s);
    if (rc != TORC_EFORK) /* the parent's, whose memory this is a copy of */
        unref(s);
}
