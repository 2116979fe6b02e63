#include "resource/session_filter.h"

#include "pb/envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb-c.h"
#include "pb/envoy/extensions/http/stateful_session/cookie/v3/cookie.pb-c.h"
#include "resource/reading.h"

typedef Envoy__Extensions__Filters__Http__StatefulSession__V3__StatefulSession StatefulSession;
typedef Envoy__Extensions__Filters__Http__StatefulSession__V3__StatefulSessionPerRoute PerRoute;
typedef Envoy__Extensions__Http__StatefulSession__Cookie__V3__CookieBasedSessionState CookieState;
typedef Envoy__Type__Http__V3__Cookie Cookie;

#define COOKIE_STATE "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState"
#define OVERRIDE(x) ENVOY__EXTENSIONS__FILTERS__HTTP__STATEFUL_SESSION__V3__STATEFUL_SESSION_PER_ROUTE__OVERRIDE_##x

static void read_cookie(struct tc_reading *p, const Cookie *m, struct tc_session_config *out)
{
    if (!m) {
        tc_faults_add_at(p->faults, ".cookie", "field not present");
        return;
    }
    tc_faults_push(p->faults, ".cookie");
    tc_read_nonempty(p, m->name, ".name");
    out->name = tc_store_text(p->store, m->name);
    out->path = tc_store_text(p->store, *m->path ? m->path : "/");
    if (m->ttl) {
        uint64_t ms = 0;
        tc_faults_push(p->faults, ".ttl");
        if (tc_read_duration_ms(p, m->ttl, &ms))
            out->ttl_s = ms / 1000 + (ms % 1000 != 0);
        tc_faults_pop(p->faults);
    }
    tc_faults_pop(p->faults);
    out->on = true;
}

static void read_state(struct tc_reading *p, const StatefulSession *m, struct tc_session_config *out)
{
    struct tc_any any;
    if (!m->session_state)
        return;
    tc_faults_push(p->faults, ".session_state.typed_config");
    if (tc_read_any(p, m->session_state->typed_config, &any)) {
        const CookieState *state = NULL;
        if (!tc_slice_eq_str(any.name, COOKIE_STATE))
            tc_faults_add(p->faults, "unsupported session state type %s", tc_read_clip(p, any.name));
        else
            state = TC_READ(
                p, &envoy__extensions__http__stateful_session__cookie__v3__cookie_based_session_state__descriptor,
                CookieState, any.bytes);
        if (state)
            read_cookie(p, state->cookie, out);
    }
    tc_faults_pop(p->faults);
}

static const void *parse(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_reading *p)
{
    (void)type;
    size_t faults = p->faults->count;
    const StatefulSession *m =
        TC_READ(p, &envoy__extensions__filters__http__stateful_session__v3__stateful_session__descriptor,
                StatefulSession, config);
    if (!m)
        return NULL;
    struct tc_session_config *out = TC_STORE_NEW(p->store, struct tc_session_config);
    read_state(p, m, out);
    return p->faults->count == faults ? out : NULL;
}

static const void *parse_override(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_reading *p)
{
    (void)type;
    size_t faults = p->faults->count;
    const PerRoute *m =
        TC_READ(p, &envoy__extensions__filters__http__stateful_session__v3__stateful_session_per_route__descriptor,
                PerRoute, config);
    if (!m)
        return NULL;
    struct tc_session_config *out = TC_STORE_NEW(p->store, struct tc_session_config);
    if (m->override_case == OVERRIDE(STATEFUL_SESSION)) {
        tc_faults_push(p->faults, ".stateful_session");
        read_state(p, m->stateful_session, out);
        tc_faults_pop(p->faults);
    }
    return p->faults->count == faults ? out : NULL;
}

const struct tc_http_filter_type tc_http_filter_session = {
    .config_name = "envoy.extensions.filters.http.stateful_session.v3.StatefulSession",
    .override_name = "envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute",
    .on_clients = true,
    .parse = parse,
    .parse_override = parse_override,
};
