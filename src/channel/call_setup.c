/* Preparation of a call, or of an attempt under hedging, before it starts. */
#include "channel/call_setup.h"

#include "channel/attempt.h"
#include "channel/deadline.h"
#include "channel/messages.h"

static void on_channel_end(struct tc_channel_call *member, const struct tc_status *status)
{
    struct tc_call *c = TC_CONTAINER_OF(member, struct tc_call, member);
    if (status)
        tc_call_fail(c, tc_status_ref(status));
    else
        tc_call_cancel(c);
}

void tc_call_init(struct tc_call *c, torc_channel *ch)
{
    c->channel = tc_channel_ref(ch);
    c->stage = TC_CALL_NEW;
    tc_list_init(&c->member.link);
    c->member.end = on_channel_end;
    tc_headers_init(&c->asked.metadata, &c->arena);
    tc_call_deadline_init(c);
    tc_call_attempt_init(c);
    tc_call_messages_init(c);
}

void tc_call_use_credentials(struct tc_call *c, torc_call_credentials *own)
{
    c->credentials = tc_call_credentials_new(&c->arena, c->channel->loop, own);
}

void tc_call_setup_credentials(struct tc_call *c)
{
    torc_call_credentials *of_channel = c->channel->credentials->call;
    if (of_channel && !c->credentials)
        tc_call_use_credentials(c, NULL);
    if (!c->credentials)
        return;
    c->credentials->of_channel = of_channel;
    c->attempt.request.auth = &c->credentials->headers;
}
