/* The loads of a remote client: counted in stores of its own, on its own loop, without a lock. The counts are sent to
 * the origin's store when the origin asks, when a use ends, and when the remote client ends. The origin asks before
 * each report but the last one of a stream, and when the server wants counts by endpoint, or no longer does.
 *
 *   load_share   the loads for one server; lives on both loops and ends with the mail `gone`
 *   load_use     mail to the origin's loop: a cluster got its first user, or lost its last
 *   load_counts  mail to the origin's loop: the counts since the last load_counts, as a LoadStatsRequest
 *   ask          mail to the remote client's loop: the origin wants the counts
 *   end, gone    mail to the origin's loop when the remote client ends, and the answer
 *
 * The end of a use is sent after the counts of the same turn, so that the origin does not drop the cluster before its
 * last counts arrive. The origin derives the RPCs in progress from the RPCs that started and ended. The last counts of
 * a remote client say how many RPCs are still in progress: the origin subtracts them, since nobody counts their end. */
#include "xds/client/remote_load.h"

#include "base/mem.h"
#include "proto/unpack.h"
#include "xds/client/client_internal.h"

#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest load_request;

/* A cluster that is in use on the origin because the remote client uses it. */
struct load_used {
    struct tc_rstr *cluster, *service; /* a reference each; service NULL: none */
    struct tc_load_cluster *loads;     /* a reference and a use; NULL: the origin does not know the server */
};

/* The loads for one server. Freed by `gone`, the last mail about the share. */
struct load_share {
    /* For the remote client's loop. */
    struct tc_link link;
    struct tc_loop *loop;
    struct tc_load_store *store; /* NULL: the remote client ended */
    struct tc_link unused;       /* of struct load_use: ends of uses, sent after the next counts */
    struct tc_task flush;
    bool answering; /* the next counts answer `ask` */
    /* For the origin's loop. */
    TC_VEC(struct load_used) used;
    struct tc_load_source source;
    bool asked; /* `ask` is not answered yet; until then, `ask` and by_endpoint belong to the other loop */
    bool by_endpoint;
    /* For both loops; constant, but for the links of the mails, which their mailbox uses. */
    struct tc_rstr *server_key;
    struct tc_xds_client *const *origin;
    struct tc_mailbox *here, *there;
    struct tc_mail ask, end, gone;
};

/* --- counts --- */

struct load_counts {
    struct tc_mail mail;
    struct load_share *share;
    bool answer;         /* answers `ask` */
    struct tc_buf bytes; /* a LoadStatsRequest */
};

static void counts_free(struct load_counts *c)
{
    tc_buf_fini(&c->bytes);
    tc_free(c);
}

static void counts_add(struct tc_load_source *source, struct tc_slice bytes, uint64_t now_ns)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    /* The counts are this process's own: no size is too much. */
    const struct tc_scan_options any = {
        .max_repeated = UINT32_MAX, .max_elements = SIZE_MAX, .max_string_bytes = SIZE_MAX};
    tc_arena_init(&arena, 0, 0);
    if (tc_unpack(&envoy__service__load_stats__v3__load_stats_request__descriptor, bytes, &any, &arena, &m, &errors) ==
        0)
        tc_load_store_add(source->store, ((load_request *)m)->cluster_stats, ((load_request *)m)->n_cluster_stats,
                          now_ns);
    else
        TC_XDS_LOG(ERROR, "loads of another loop cannot be read: %s", tc_validation_text(&errors));
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

static void counts_arrive(struct tc_mail *mail)
{
    struct load_counts *c = TC_CONTAINER_OF(mail, struct load_counts, mail);
    struct load_share *s = c->share;
    if (s->source.store)
        counts_add(&s->source, tc_buf_slice(&c->bytes), tc_loop_now_ns((*s->origin)->loop));
    if (c->answer)
        s->asked = false;
    tc_load_source_answered(&s->source);
    counts_free(c);
}

static void counts_dropped(struct tc_mail *mail)
{
    counts_free(TC_CONTAINER_OF(mail, struct load_counts, mail));
}

/* Sends the counts since the last time. `last`: with the RPCs in progress, whose end nobody will count. */
static void share_send_counts(struct load_share *s, bool last)
{
    load_request m = ENVOY__SERVICE__LOAD_STATS__V3__LOAD_STATS_REQUEST__INIT;
    const struct tc_load_filter all = {.all = true, .endpoints = true};
    struct tc_arena arena;
    struct load_counts *c = TC_NEW(struct load_counts);
    c->mail = (struct tc_mail){.run = counts_arrive, .drop = counts_dropped};
    c->share = s;
    c->answer = s->answering;
    s->answering = false;
    tc_arena_init(&arena, 0, 0);
    m.n_cluster_stats = tc_load_store_take(s->store, &all, tc_loop_now_ns(s->loop), &arena, &m.cluster_stats);
    if (!last)
        tc_load_stats_none_in_progress(m.cluster_stats, m.n_cluster_stats);
    size_t len = envoy__service__load_stats__v3__load_stats_request__get_packed_size(&m);
    c->bytes.len =
        envoy__service__load_stats__v3__load_stats_request__pack(&m, (uint8_t *)tc_buf_reserve(&c->bytes, len));
    tc_load_store_settle(s->store, true);
    tc_arena_fini(&arena);
    tc_mailbox_send(s->there, &c->mail);
}

/* --- clusters in use --- */

struct load_use {
    struct tc_mail mail;
    struct tc_link link;
    struct load_share *share;
    struct tc_rstr *cluster, *service;
    bool used;
};

static void use_free(struct load_use *u)
{
    tc_rstr_unref(u->cluster);
    tc_rstr_unref(u->service);
    tc_free(u);
}

static void used_fini(struct load_used *u)
{
    if (u->loads) {
        tc_load_cluster_unuse(u->loads);
        tc_load_cluster_unref(u->loads);
    }
    tc_rstr_unref(u->cluster);
    tc_rstr_unref(u->service);
}

static void share_begin_use(struct load_share *s, const struct load_use *u)
{
    struct load_used used = {tc_rstr_ref(u->cluster), tc_rstr_ref(u->service), NULL};
    used.loads = tc_xds_client_load(*s->origin, s->server_key, u->cluster, u->service);
    *tc_vec_push(&s->used) = used;
    if (used.loads && !s->source.store)
        tc_load_source_add(used.loads->store, &s->source);
}

static void share_end_use(struct load_share *s, const struct load_use *u)
{
    for (size_t i = 0; i < s->used.len; i++) {
        struct load_used *at = &s->used.data[i];
        if (!tc_rstr_eq(at->cluster, u->cluster) || !tc_rstr_eq(at->service, u->service))
            continue;
        used_fini(at);
        tc_vec_remove(&s->used, i);
        return;
    }
}

static void use_arrives(struct tc_mail *mail)
{
    struct load_use *u = TC_CONTAINER_OF(mail, struct load_use, mail);
    if (u->used)
        share_begin_use(u->share, u);
    else
        share_end_use(u->share, u);
    use_free(u);
}

static void use_dropped(struct tc_mail *mail)
{
    use_free(TC_CONTAINER_OF(mail, struct load_use, mail));
}

/* Sends the start of a use at once. The end of a use waits for the counts of this turn, which are complete at the end
 * of the turn. */
static void on_use(void *arg, const struct tc_load_cluster *cluster, bool used)
{
    struct load_share *s = arg;
    struct load_use *u = TC_NEW(struct load_use);
    u->mail = (struct tc_mail){.run = use_arrives, .drop = use_dropped};
    u->share = s;
    u->cluster = tc_rstr_ref(cluster->cluster);
    u->service = tc_rstr_ref(cluster->service);
    u->used = used;
    tc_list_init(&u->link);
    if (used) {
        tc_mailbox_send(s->there, &u->mail);
        return;
    }
    tc_list_append(&s->unused, &u->link);
    tc_loop_at_turn_end(s->loop, &s->flush);
}

static void share_flush(struct load_share *s, bool last)
{
    struct tc_link *link;
    share_send_counts(s, last);
    while ((link = tc_list_pop(&s->unused)))
        tc_mailbox_send(s->there, &TC_CONTAINER_OF(link, struct load_use, link)->mail);
}

static void on_flush(struct tc_task *task)
{
    share_flush(TC_CONTAINER_OF(task, struct load_share, flush), false);
}

/* --- the origin asks --- */

static void share_ask(struct tc_load_source *source)
{
    struct load_share *s = TC_CONTAINER_OF(source, struct load_share, source);
    if (s->asked)
        return; /* the other loop may not have turned since the last time, and still holds the mail */
    s->asked = true;
    s->by_endpoint = source->by_endpoint;
    tc_mailbox_send(s->here, &s->ask);
}

static void ask_arrives(struct tc_mail *mail)
{
    struct load_share *s = TC_CONTAINER_OF(mail, struct load_share, ask);
    if (!s->store)
        return;
    s->answering = true;
    tc_load_store_by_endpoint(s->store, s->by_endpoint);
    tc_loop_at_turn_end(s->loop, &s->flush);
}

/* --- life --- */

/* On the origin's loop; if its mailbox is closed, on the thread that drops the mail. */
static void origin_ends(struct tc_mail *mail)
{
    struct load_share *s = TC_CONTAINER_OF(mail, struct load_share, end);
    tc_load_source_remove(&s->source);
    for (size_t i = 0; i < s->used.len; i++)
        used_fini(&s->used.data[i]);
    tc_vec_fini(&s->used);
    tc_mailbox_send(s->here, &s->gone);
}

static void share_gone(struct tc_mail *mail)
{
    struct load_share *s = TC_CONTAINER_OF(mail, struct load_share, gone);
    tc_rstr_unref(s->server_key);
    tc_mailbox_unref(s->here);
    tc_mailbox_unref(s->there);
    tc_free(s);
}

static struct load_share *share_new(struct tc_xds_remote_loads *loads, struct tc_rstr *server_key)
{
    struct load_share *s = TC_NEW(struct load_share);
    s->loop = loads->loop;
    s->store = tc_load_store_new(NULL, NULL);
    tc_load_store_on_use(s->store, on_use, s);
    tc_list_init(&s->unused);
    tc_task_init(&s->flush, on_flush);
    s->source.ask = share_ask;
    tc_list_init(&s->source.link);
    s->server_key = tc_rstr_ref(server_key);
    s->origin = loads->origin;
    s->here = tc_mailbox_ref(loads->here);
    s->there = tc_mailbox_ref(loads->there);
    s->ask = (struct tc_mail){.run = ask_arrives};
    s->end = (struct tc_mail){.run = origin_ends, .drop = origin_ends};
    s->gone = (struct tc_mail){.run = share_gone, .drop = share_gone};
    tc_list_init(&s->link);
    tc_list_append(&loads->shares, &s->link);
    return s;
}

void tc_xds_remote_loads_init(struct tc_xds_remote_loads *loads, struct tc_loop *loop, struct tc_mailbox *here,
                              struct tc_mailbox *there, struct tc_xds_client *const *origin)
{
    *loads = (struct tc_xds_remote_loads){.loop = loop, .here = here, .there = there, .origin = origin};
    tc_list_init(&loads->shares);
}

struct tc_load_cluster *tc_xds_remote_load(struct tc_xds_remote_loads *loads, struct tc_rstr *server_key,
                                           struct tc_rstr *cluster, struct tc_rstr *service)
{
    struct load_share *s = NULL;
    TC_LIST_FOREACH(it, &loads->shares)
    if (tc_rstr_eq(TC_CONTAINER_OF(it, struct load_share, link)->server_key, server_key))
        s = TC_CONTAINER_OF(it, struct load_share, link);
    if (!s)
        s = share_new(loads, server_key);
    return tc_load_cluster_get(s->store, cluster, service, tc_loop_now_ns(loads->loop));
}

void tc_xds_remote_loads_end(struct tc_xds_remote_loads *loads)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&loads->shares))) {
        struct load_share *s = TC_CONTAINER_OF(link, struct load_share, link);
        tc_task_cancel(&s->flush);
        share_flush(s, true);
        tc_load_store_free(s->store);
        s->store = NULL;
        tc_mailbox_send(s->there, &s->end);
    }
}
