/* Writes JSON straight into a buffer, without JSON values in between, because the model test describes a tree of
 * policies in every state. */
#include "lb/describe.h"

#include "base/parse.h"
#include "lb/connectivity.h"

/* Writes the comma that separates members, and the key if there is one. */
static void describe_begin_member(struct tc_describe *d, const char *key)
{
    if (d->follows)
        tc_buf_append_char(&d->out, ',');
    d->follows = true;
    if (!key)
        return;
    tc_buf_append_char(&d->out, '"');
    tc_buf_append_str(&d->out, key);
    tc_buf_append_str(&d->out, "\":");
}

void tc_describe_open(struct tc_describe *d, const char *key, char bracket)
{
    describe_begin_member(d, key);
    tc_buf_append_char(&d->out, bracket);
    d->follows = false;
}

void tc_describe_close(struct tc_describe *d, char bracket)
{
    tc_buf_append_char(&d->out, bracket);
    d->follows = true;
}

/* The text of an error may hold bytes of a peer that are not UTF-8. Such a text is read as Latin-1: each byte above
 * 0x7f becomes \u00XX. */
void tc_describe_text(struct tc_describe *d, const char *key, struct tc_slice text)
{
    describe_begin_member(d, key);
    tc_buf_append_char(&d->out, '"');
    bool valid = tc_utf8_valid(text);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x20 || (c >= 0x80 && !valid))
            tc_buf_printf(&d->out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            tc_buf_printf(&d->out, "\\%c", c);
        else
            tc_buf_append_char(&d->out, (char)c);
    }
    tc_buf_append_char(&d->out, '"');
}

void tc_describe_number(struct tc_describe *d, const char *key, uint64_t number)
{
    char digits[20];
    size_t n = sizeof(digits);
    do
        digits[--n] = (char)('0' + number % 10);
    while (number /= 10);
    describe_begin_member(d, key);
    tc_buf_append(&d->out, digits + n, sizeof(digits) - n);
}

void tc_describe_state(struct tc_describe *d, const char *key, enum torc_connectivity state)
{
    tc_describe_text(d, key, tc_slice_str(tc_connectivity_name(state)));
}

void tc_describe_flag(struct tc_describe *d, const char *key, bool holds)
{
    if (!holds)
        return;
    describe_begin_member(d, key);
    tc_buf_append_str(&d->out, "true");
}

void tc_describe_timer(struct tc_describe *d, const char *key, const struct tc_timer *timer)
{
    uint64_t now_ms = tc_loop_now_ms(timer->loop);
    if (tc_timer_active(timer))
        tc_describe_number(d, key, timer->due_ms > now_ms ? timer->due_ms - now_ms : 0);
}

void tc_describe_endpoint(struct tc_describe *d, const char *key, const struct tc_endpoint *endpoint)
{
    struct tc_buf text = {0};
    for (size_t i = 0; i < endpoint->n_addrs; i++) {
        if (i)
            tc_buf_append_char(&text, ',');
        tc_addr_format(&endpoint->addrs[i], &text);
    }
    tc_describe_text(d, key, tc_buf_slice(&text));
    tc_buf_fini(&text);
}

void tc_describe_policy(struct tc_describe *d, const char *key, const struct tc_lb_policy *policy)
{
    if (!policy)
        return;
    tc_describe_open(d, key, '{');
    tc_describe_text(d, "policy", tc_slice_str(policy->factory->name));
    if (policy->ops->describe && policy->helper)
        policy->ops->describe(policy, d);
    tc_describe_close(d, '}');
}
