/* Outcomes of calls as torc_result, and messages.
 *
 * A result is either owned (tc_result_own: strings are references to shared ones, so that the usual outcome allocates
 * none; torc_result_fini gives them back) or borrowed for the length of a callback (tc_result_borrow: everything lives
 * in the call's arena). */
#include "api/result.h"

#include <pthread.h>

#include "api/explain.h"
#include "api/metadata.h"

const void *torc_message_data(const torc_message *message)
{
    return message ? ((const struct tc_rstr *)message)->data : NULL;
}

size_t torc_message_size(const torc_message *message)
{
    return message ? ((const struct tc_rstr *)message)->len : 0;
}

torc_message *torc_message_ref(const torc_message *message)
{
    return (torc_message *)tc_rstr_ref((struct tc_rstr *)(uintptr_t)message);
}

void torc_message_unref(torc_message *message)
{
    tc_rstr_unref((struct tc_rstr *)message);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tc_rstr *empty;

static void make_empty(void)
{
    empty = tc_rstr_str("");
}

static char *text_share(struct tc_rstr *s)
{
    if (s)
        return tc_rstr_ref(s)->data;
    pthread_once(&once, make_empty);
    return tc_rstr_ref(empty)->data;
}

static void text_drop(char *text)
{
    if (text)
        tc_rstr_unref(TC_CONTAINER_OF(text, struct tc_rstr, data));
}

void tc_result_own(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response)
{
    *r = (struct torc_result){
        .code = end->status.code,
        .message = text_share(end->status.text),
        .response = (torc_message *)response,
        .peer = text_share(end->peer),
        .attempts = end->attempts,
    };
    tc_metadata_copy_pair(tc_loop_blocks(call->channel->loop), end->headers, end->trailers, &r->headers, &r->trailers);
    if (call->core.asked.explain) {
        struct tc_rstr *text = tc_rstr_str(tc_call_explain(&call->core));
        r->explain_json = text->data;
    }
}

void torc_result_fini(struct torc_result *r)
{
    if (!r)
        return;
    text_drop(r->message);
    text_drop(r->peer);
    text_drop(r->explain_json);
    torc_message_unref(r->response);
    /* Headers and trailers may share one block, which the headers own. */
    torc_metadata_free(r->trailers);
    torc_metadata_free(r->headers);
    *r = (struct torc_result){0};
}

static char *text_borrow(const struct tc_rstr *s)
{
    static char none[1];
    return s ? (char *)(uintptr_t)s->data : none;
}

void tc_result_borrow(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response)
{
    *r = (struct torc_result){
        .code = end->status.code,
        .message = text_borrow(end->status.text),
        .response = (torc_message *)response,
        .headers = tc_metadata_in_arena(&call->core.arena, end->headers),
        .trailers = tc_metadata_in_arena(&call->core.arena, end->trailers),
        .peer = text_borrow(end->peer),
        .attempts = end->attempts,
        .explain_json = call->core.asked.explain ? (char *)(uintptr_t)tc_call_explain(&call->core) : NULL,
    };
}
