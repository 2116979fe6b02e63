/* Decodes the stateful session filter's config (A55) and its overrides. xds/filter/session_filter.c applies it to RPCs.
 *
 * The cookie is the only session state that gRPC knows; another kind is an error. `on` stays false for a config without
 * session state, and for an override that disables the filter or has no content. Runs on any thread. */
#include "xds/resource/session_filter.h"

#include "pb/envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb-c.h"
#include "pb/envoy/extensions/http/stateful_session/cookie/v3/cookie.pb-c.h"
#include "xds/resource/decoder.h"

typedef Envoy__Extensions__Filters__Http__StatefulSession__V3__StatefulSession StatefulSession;
typedef Envoy__Extensions__Filters__Http__StatefulSession__V3__StatefulSessionPerRoute PerRoute;
typedef Envoy__Extensions__Http__StatefulSession__Cookie__V3__CookieBasedSessionState CookieState;
typedef Envoy__Type__Http__V3__Cookie Cookie;

#define OVERRIDE(x) ENVOY__EXTENSIONS__FILTERS__HTTP__STATEFUL_SESSION__V3__STATEFUL_SESSION_PER_ROUTE__OVERRIDE_##x

static void decode_cookie(struct tc_decoder *dec, const Cookie *m, struct tc_session_config *out)
{
    if (!m) {
        tc_validation_add_at(dec->errors, ".cookie", "field not present");
        return;
    }
    tc_validation_push(dec->errors, ".cookie");
    tc_decode_nonempty(dec, m->name, ".name");
    out->name = tc_resource_arena_text(dec->arena, m->name);
    out->path = tc_resource_arena_text(dec->arena, *m->path ? m->path : "/");
    if (m->ttl) {
        uint64_t ms = 0;
        if (tc_decode_duration_ms(dec, ".ttl", m->ttl, &ms))
            out->ttl_s = ms / 1000 + (ms % 1000 != 0);
    }
    tc_validation_pop(dec->errors);
    out->on = true;
}

static void decode_state(struct tc_decoder *dec, const StatefulSession *m, struct tc_session_config *out)
{
    if (!m->session_state)
        return;
    tc_validation_push(dec->errors, ".session_state.typed_config");
    const CookieState *state =
        TC_DECODE_ANY(dec, m->session_state->typed_config,
                      &envoy__extensions__http__stateful_session__cookie__v3__cookie_based_session_state__descriptor,
                      CookieState, "unsupported session state type");
    if (state)
        decode_cookie(dec, state->cookie, out);
    tc_validation_pop(dec->errors);
}

const void *tc_session_config_parse(const struct tc_http_filter_type *type, struct tc_slice config,
                                    struct tc_decoder *dec)
{
    (void)type;
    size_t errors = dec->errors->count;
    const StatefulSession *m =
        TC_DECODE(dec, &envoy__extensions__filters__http__stateful_session__v3__stateful_session__descriptor,
                  StatefulSession, config);
    if (!m)
        return NULL;
    struct tc_session_config *out = TC_RESOURCE_NEW(dec->arena, struct tc_session_config);
    decode_state(dec, m, out);
    return dec->errors->count == errors ? out : NULL;
}

const void *tc_session_override_parse(const struct tc_http_filter_type *type, struct tc_slice config,
                                      struct tc_decoder *dec)
{
    (void)type;
    size_t errors = dec->errors->count;
    const PerRoute *m =
        TC_DECODE(dec, &envoy__extensions__filters__http__stateful_session__v3__stateful_session_per_route__descriptor,
                  PerRoute, config);
    if (!m)
        return NULL;
    struct tc_session_config *out = TC_RESOURCE_NEW(dec->arena, struct tc_session_config);
    if (m->override_case == OVERRIDE(STATEFUL_SESSION)) {
        tc_validation_push(dec->errors, ".stateful_session");
        decode_state(dec, m->stateful_session, out);
        tc_validation_pop(dec->errors);
    }
    return dec->errors->count == errors ? out : NULL;
}
