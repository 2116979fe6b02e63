/* Decodes responses that are large or slow to decode on the background thread, so that RPCs do not wait.
 *
 *   loop     tc_xds_decode_thread_begin collects the resources that are not in use already, and hands over a job
 *   thread   decode_job_run decodes each; uses only the job, the bootstrap and immutable registries
 *   loop     on_decoded applies the response as if it had just come; tc_xds_decode_thread_result replaces decoding
 *
 * The job holds the message, into which all slices point, and a reference to the token: no further response is read
 * meanwhile. Two things may happen in between. The channel abandons the response: job->channel becomes NULL, and the
 * result is dropped. The stream ends: the job keeps the stream's status, which takes effect after the response.
 *
 * A response is decoded on the loop at once if decode_thread_bytes is 0, if its type needs the loop's thread
 * (any_thread is false), or if it has fewer than decode_thread_bytes to decode and no resource that is slow to
 * decode.
 *
 * Once the job was handed over, on_decoded frees it on the loop. If the mailbox was closed before, on_decode_dropped
 * frees it, on the loop's thread or the background thread. */
#include "xds/client/decode_thread.h"

#include "base/clock.h"
#include "base/mem.h"
#include "io/background_thread.h"
#include "xds/client/ads.h"
#include "xds/client/cache.h"

struct tc_xds_decode_job {
    struct tc_xds_pending_response base; /* the part that the stream sees */
    struct tc_job background;
    struct tc_mail mail;
    struct tc_mailbox *box;
    struct tc_xds_channel *channel; /* NULL: given up; for the loop's thread */
    struct tc_xds_token *token;     /* a reference; NULL: given up; for the loop's thread */
    const struct tc_xds_response_variant *variant;
    struct tc_rstr *message;
    struct tc_arena arena; /* of m */
    const ProtobufCMessage *m;
    const struct tc_xds_resource_type *type;
    struct tc_xds_bootstrap *bootstrap;
    struct tc_xds_decode_context ctx;
    size_t regex_bytes; /* of ctx; the loop counts on from here */
    TC_VEC(struct tc_xds_decode_result) items;
    size_t next, bytes; /* index into items where the next search starts; bytes of all items */
    uint64_t took_ns;   /* CPU time of decoding */
    bool slow;          /* a resource may take long to decode */
    bool ended;         /* the stream ended meanwhile, with `status` */
    struct tc_status status;
};

/* Frees the job, but does not drop its reference to the token. Any thread. */
static void decode_job_free(struct tc_xds_decode_job *job)
{
    for (size_t i = 0; i < job->items.len; i++) {
        tc_xds_resource_unref(job->items.data[i].resource);
        tc_rstr_unref(job->items.data[i].own_name);
        tc_rstr_unref(job->items.data[i].errors);
    }
    tc_vec_fini(&job->items);
    tc_arena_fini(&job->arena);
    tc_rstr_unref(job->message);
    tc_xds_bootstrap_unref(job->bootstrap);
    tc_mailbox_unref(job->box);
    tc_status_fini(&job->status);
    tc_free(job);
}

/* Adds a resource to the job. Skips resources of another type, those in use already, and those whose bytes are not in
 * the message: the loop handles these when it applies the response. */
static void decode_job_collect(struct tc_xds_response_context *ctx, const struct tc_xds_response_resource *r)
{
    struct tc_xds_decode_job *job = ctx->collect_for;
    const char *begin = job->message->data, *end = begin + job->message->len;
    if (!tc_slice_eq_str(r->type_url, ctx->type->type_url) || r->bytes.data < begin || r->bytes.data >= end ||
        tc_xds_response_unchanged(ctx, r))
        return;
    struct tc_xds_decode_result *d = tc_vec_push(&job->items);
    *d = (struct tc_xds_decode_result){.index = r->index, .bytes = r->bytes};
    job->bytes += r->bytes.len;
    job->slow = job->slow || (ctx->type->slow && ctx->type->slow(r->bytes));
}

static void decode_job_run(struct tc_job *background)
{
    struct tc_xds_decode_job *job = TC_CONTAINER_OF(background, struct tc_xds_decode_job, background);
    const uint64_t began_ns = tc_thread_cpu_ns();
    for (size_t i = 0; i < job->items.len; i++) {
        struct tc_xds_decode_result *d = &job->items.data[i];
        struct tc_validation_errors errors = {0};
        d->resource = job->type->decode(job->type, &job->ctx, d->bytes, &d->own_name, &errors);
        d->errors = tc_validation_any(&errors) ? tc_rstr_str(tc_validation_text(&errors)) : NULL;
        tc_validation_fini(&errors);
    }
    job->took_ns = tc_thread_cpu_ns() - began_ns;
    tc_mailbox_send(job->box, &job->mail);
}

static void on_decode_dropped(struct tc_mail *mail)
{
    decode_job_free(TC_CONTAINER_OF(mail, struct tc_xds_decode_job, mail));
}

static void on_decoded(struct tc_mail *mail)
{
    struct tc_xds_decode_job *job = TC_CONTAINER_OF(mail, struct tc_xds_decode_job, mail);
    struct tc_xds_channel *ch = job->channel;
    if (!ch) {
        decode_job_free(job);
        return;
    }
    struct tc_xds_token *token = job->token;
    struct tc_xds_client *c = tc_xds_client_ref(&ch->client->base);
    struct tc_xds_response_context ctx = {.ch = ch, .token = token, .decoded_by = job, .regex_bytes = job->regex_bytes};
    const uint64_t began_ns = tc_thread_cpu_ns();
    ch->ads.refused = false;
    ch->client->events->on_reachable(ch, token);
    job->variant->apply(&ctx, job->m);
    /* NULL: the channel abandoned the job while the response was applied. */
    ch = job->channel;
    job->channel = NULL;
    if (ch) {
        ch->ads.pending = NULL;
        if (ch->ads.refused)
            tc_xds_ads_pause(ch, job->took_ns + (tc_thread_cpu_ns() - began_ns));
        tc_xds_token_unref(token);
        if (job->ended)
            tc_xds_ads_ended(ch, &job->status);
    }
    decode_job_free(job);
    tc_xds_client_unref(c);
}

static void decode_job_on_stream_end(struct tc_xds_pending_response *p, const struct tc_status *status)
{
    struct tc_xds_decode_job *job = TC_CONTAINER_OF(p, struct tc_xds_decode_job, base);
    job->ended = true;
    job->status = tc_status_ref(status);
}

static void decode_job_abandon(struct tc_xds_pending_response *p)
{
    struct tc_xds_decode_job *job = TC_CONTAINER_OF(p, struct tc_xds_decode_job, base);
    tc_xds_token_unref(job->token);
    job->token = NULL;
    job->channel = NULL;
}

bool tc_xds_decode_thread_begin(struct tc_xds_channel *ch, const struct tc_xds_response_variant *variant,
                                struct tc_rstr *message, struct tc_arena *arena, const ProtobufCMessage *m,
                                struct tc_xds_token *token)
{
    struct tc_xds_local_client *c = ch->client;
    size_t type = tc_xds_response_type(ch, variant->type_url(m)), least = c->opts.decode_thread_bytes;
    if (least == 0 || type == TC_XDS_NO_TYPE || !c->types.data[type]->any_thread ||
        (message->len < least && !c->types.data[type]->slow))
        return false;
    struct tc_xds_decode_job *job = TC_NEW(struct tc_xds_decode_job);
    struct tc_xds_response_context ctx = {
        .ch = ch, .type = c->types.data[type], .type_index = type, .collect_for = job};
    job->message = tc_rstr_ref(message);
    variant->each(&ctx, m, decode_job_collect);
    tc_validation_fini(&ctx.errors); /* errors are reported when the response is applied */
    if (job->bytes < least && !job->slow) {
        decode_job_free(job);
        return false;
    }
    if (!ch->ads.box)
        ch->ads.box = tc_mailbox_new(c->base.loop);
    job->box = tc_mailbox_ref(ch->ads.box);
    job->base =
        (struct tc_xds_pending_response){.on_stream_end = decode_job_on_stream_end, .abandon = decode_job_abandon};
    job->background.run = decode_job_run;
    job->mail = (struct tc_mail){.run = on_decoded, .drop = on_decode_dropped};
    job->channel = ch;
    job->token = token;
    tc_xds_token_ref(token);
    job->variant = variant;
    job->arena = *arena;
    tc_arena_init(arena, 0, 0);
    job->m = m;
    job->type = ctx.type;
    job->bootstrap = tc_xds_bootstrap_ref(c->base.bootstrap);
    job->ctx = (struct tc_xds_decode_context){job->bootstrap, ch->server, c->opts.registries, &job->regex_bytes};
    ch->ads.pending = &job->base;
    tc_background_run(&job->background);
    return true;
}

struct tc_xds_decode_result *tc_xds_decode_thread_result(struct tc_xds_decode_job *job, size_t index)
{
    while (job->next < job->items.len && job->items.data[job->next].index < index)
        job->next++;
    return job->next < job->items.len && job->items.data[job->next].index == index ? &job->items.data[job->next] : NULL;
}
