#include "xds/response_ahead.h"

#include "base/clock.h"
#include "base/mem.h"
#include "io/worker.h"

struct tc_xds_ahead {
    struct tc_job job;
    struct tc_mail mail;
    struct tc_mailbox *box;
    struct tc_xds_channel *channel; /* NULL: given up; for the loop's thread */
    struct tc_xds_done *done;       /* likewise */
    const struct tc_xds_form *form;
    struct tc_rstr *message;
    struct tc_arena arena; /* of m */
    const ProtobufCMessage *m;
    const struct tc_xds_resource_type *type;
    struct tc_xds_bootstrap *bootstrap;
    struct tc_xds_decode_context ctx;
    size_t regex_bytes;
    TC_VEC(struct tc_xds_decoded) items;
    size_t next, bytes;
    uint64_t took_ns; /* of a processor */
    bool slow;        /* one may be */
    bool ended;       /* the stream, meanwhile; with this status */
    bool local;
    struct tc_status status;
};

/* Any thread. */
static void ahead_free(struct tc_xds_ahead *h)
{
    for (size_t i = 0; i < h->items.len; i++) {
        tc_xds_resource_unref(h->items.data[i].resource);
        tc_rstr_unref(h->items.data[i].own_name);
        tc_rstr_unref(h->items.data[i].faults);
    }
    tc_vec_fini(&h->items);
    tc_arena_fini(&h->arena);
    tc_rstr_unref(h->message);
    tc_xds_bootstrap_unref(h->bootstrap);
    tc_mailbox_unref(h->box);
    tc_status_fini(&h->status);
    tc_free(h);
}

/* What is in use already is not decoded; nor, for the time being, what is not where the message has it. */
static void collect(struct tc_xds_applying *a, const struct tc_xds_found *r)
{
    struct tc_xds_ahead *h = a->collected;
    const char *begin = h->message->data, *end = begin + h->message->len;
    if (!tc_slice_eq_str(r->type_url, a->type->type_url) || r->bytes.data < begin || r->bytes.data >= end ||
        tc_xds_unchanged(a, r))
        return;
    struct tc_xds_decoded *d = tc_vec_push(&h->items);
    *d = (struct tc_xds_decoded){.index = r->index, .bytes = r->bytes};
    h->bytes += r->bytes.len;
    h->slow = h->slow || (a->type->slow && a->type->slow(r->bytes));
}

static void run(struct tc_job *job)
{
    struct tc_xds_ahead *h = TC_CONTAINER_OF(job, struct tc_xds_ahead, job);
    const uint64_t began_ns = tc_thread_cpu_ns();
    for (size_t i = 0; i < h->items.len; i++) {
        struct tc_xds_decoded *d = &h->items.data[i];
        struct tc_faults faults;
        tc_faults_init(&faults);
        d->resource = h->type->decode(h->type, &h->ctx, d->bytes, &d->own_name, &faults);
        d->faults = tc_faults_any(&faults) ? tc_rstr_str(tc_faults_text(&faults)) : NULL;
        tc_faults_fini(&faults);
    }
    h->took_ns = tc_thread_cpu_ns() - began_ns;
    tc_mailbox_send(h->box, &h->mail);
}

static void on_dropped(struct tc_mail *mail)
{
    ahead_free(TC_CONTAINER_OF(mail, struct tc_xds_ahead, mail));
}

static void on_decoded(struct tc_mail *mail)
{
    struct tc_xds_ahead *h = TC_CONTAINER_OF(mail, struct tc_xds_ahead, mail);
    struct tc_xds_channel *ch = h->channel;
    if (!ch) {
        ahead_free(h);
        return;
    }
    struct tc_xds_done *done = h->done;
    struct tc_xds_client *c = tc_xds_client_ref(ch->client);
    struct tc_xds_applying a = {.ch = ch, .done = done, .ahead = h, .regex_bytes = h->regex_bytes};
    const uint64_t began_ns = tc_thread_cpu_ns();
    ch->ads.refused = false;
    tc_xds_channel_healthy(ch, done);
    h->form->apply(&a, h->m);
    /* The channel may be gone now, and with it its hold on this. */
    ch = h->channel;
    h->channel = NULL;
    if (ch) {
        ch->ads.ahead = NULL;
        if (ch->ads.refused)
            tc_xds_ads_pause(ch, h->took_ns + (tc_thread_cpu_ns() - began_ns));
        tc_xds_done_unref(done);
        if (h->ended)
            tc_xds_ads_ended(ch, &h->status, h->local);
    }
    ahead_free(h);
    tc_xds_client_unref(c);
}

bool tc_xds_ahead_begin(struct tc_xds_channel *ch, const struct tc_xds_form *form, struct tc_rstr *message,
                        struct tc_arena *arena, const ProtobufCMessage *m, struct tc_xds_done *done)
{
    struct tc_xds_client *c = ch->client;
    size_t type = tc_xds_type_index(c, form->type_url(m)), least = c->opts.ahead_bytes;
    if (least == 0 || type == TC_XDS_NO_TYPE || !c->types.data[type]->any_thread ||
        (message->len < least && !c->types.data[type]->slow))
        return false;
    struct tc_xds_ahead *h = TC_NEW(struct tc_xds_ahead);
    struct tc_xds_applying a = {.ch = ch, .type = c->types.data[type], .type_index = type, .collected = h};
    h->message = tc_rstr_ref(message);
    tc_faults_init(&a.faults); /* what there is to say is said when it is applied */
    form->each(&a, m, collect);
    tc_faults_fini(&a.faults);
    if (h->bytes < least && !h->slow) {
        ahead_free(h);
        return false;
    }
    if (!ch->ads.box)
        ch->ads.box = tc_mailbox_new(c->loop);
    h->box = tc_mailbox_ref(ch->ads.box);
    h->job.run = run;
    h->mail = (struct tc_mail){.run = on_decoded, .drop = on_dropped};
    h->channel = ch;
    h->done = done;
    tc_xds_done_ref(done);
    h->form = form;
    h->arena = *arena;
    tc_arena_init(arena, 0, 0);
    h->m = m;
    h->type = a.type;
    h->bootstrap = tc_xds_bootstrap_ref(c->bootstrap);
    h->ctx = (struct tc_xds_decode_context){h->bootstrap, ch->server, c->opts.registries, &h->regex_bytes};
    ch->ads.ahead = h;
    tc_worker_do(&h->job);
    return true;
}

struct tc_xds_decoded *tc_xds_ahead_find(struct tc_xds_ahead *h, size_t index)
{
    while (h->next < h->items.len && h->items.data[h->next].index < index)
        h->next++;
    return h->next < h->items.len && h->items.data[h->next].index == index ? &h->items.data[h->next] : NULL;
}

void tc_xds_ahead_end(struct tc_xds_ahead *h, const struct tc_status *status, bool local)
{
    h->ended = true;
    h->status = tc_status_ref(status);
    h->local = local;
}

void tc_xds_ahead_abandon(struct tc_xds_ahead *h)
{
    tc_xds_done_unref(h->done);
    h->done = NULL;
    h->channel = NULL;
}
