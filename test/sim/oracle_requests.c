/* The rules for a request as its backend gets it.
 *
 *   timeout     "grpc-timeout" is the time that is left until the deadline; a call without a deadline has none
 *   authority   ":authority" is the channel's
 *   metadata    "x-key" is the call's
 *   previous    "grpc-previous-rpc-attempts" is the number of tries before this one (A6). A try that no backend saw
 *               counts (a pick that failed); a request that the client sends again by itself does not
 *
 * The request was sent before it came, so its grpc-timeout is at least the time that is left when it comes. It is more
 * by the time on the network: by MOST_SETTLED_MS at most in a settled world, else by MOST_STALLED_MS. In a settled
 * world a retry begins only when the previous try has come to its backend, and carries no more time than was left then.
 * In other worlds the previous try may still be on its way, on a connection that the client has closed, and come later
 * than the retry. */
#include <stdio.h>
#include <string.h>

#include "sim/oracle_internal.h"
#include "sim/trace.h"

enum { ROUNDING_MS = 2, MOST_SETTLED_MS = 9000, MOST_STALLED_MS = 20000 };

typedef unsigned long long ull;

static void judge_timeout(uint64_t id, const struct tracked *t, const struct oracle_request *r, uint64_t now_ms)
{
    bool settled = oracle_settled(t->began_ms) && oracle_settled(now_ms);
    int64_t left_ms = t->timeout_ms - (int64_t)(now_ms - t->began_ms);
    int64_t most_ms = left_ms + (settled ? MOST_SETTLED_MS : MOST_STALLED_MS);
    if (r->has_timeout != (t->timeout_ms >= 0))
        sim_violation("timeout: host %u has call %llu %s a timeout, asked for %lld ms", r->host, (ull)id,
                      r->has_timeout ? "with" : "without", (long long)t->timeout_ms);
    if (!r->has_timeout)
        return;
    if (settled && t->n_seen > 0 && !oracle.mesh.services[t->call.service].hedged) {
        int64_t then_ms = t->timeout_ms - (int64_t)(t->seen_ms - t->began_ms) + SLACK_MS;
        most_ms = then_ms < most_ms ? then_ms : most_ms;
        sim_count(SIM_COUNT_TIMEOUTS_OF_RETRIES);
    }
    if (r->left_ms + ROUNDING_MS < left_ms || r->left_ms > most_ms)
        sim_violation("timeout: request %u of call %llu, at host %u, says that %lld ms are left, it is %lld ms",
                      t->n_seen + 1, (ull)id, r->host, (long long)r->left_ms, (long long)left_ms);
}

static void judge_previous(uint64_t id, struct tracked *t, const struct oracle_request *r)
{
    const struct sim_service *s = &oracle.mesh.services[t->call.service];
    bool settled = oracle_settled(t->began_ms);
    bool counted = r->previous_attempts < MAX_TRIES && !(t->previous >> r->previous_attempts & 1);
    if (!counted || (settled && !s->hedged && r->previous_attempts < t->n_seen) ||
        (settled && r->previous_attempts > s->retries))
        sim_violation("previous: request %u of call %llu says that %u tries came before, s%u allows %u retries",
                      t->n_seen + 1, (ull)id, r->previous_attempts, t->call.service, s->retries);
    else
        t->previous |= UINT32_C(1) << r->previous_attempts;
}

static void judge_metadata(uint64_t id, const struct tracked *t, const struct oracle_request *r)
{
    const struct sim_service *s = &oracle.mesh.services[t->call.service];
    char authority[32], key[16] = "";
    snprintf(authority, sizeof(authority), s->hedged ? "d%u.test:8080" : "s%u",
             s->hedged ? s->cluster : t->call.service);
    if (t->call.key >= 0)
        snprintf(key, sizeof(key), "key-%d", t->call.key);
    if (strcmp(r->authority, authority) != 0)
        sim_violation("authority: host %u has call %llu for \"%s\", expected \"%s\"", r->host, (ull)id, r->authority,
                      authority);
    if (strcmp(r->key, key) != 0)
        sim_violation("metadata: host %u has call %llu with x-key \"%s\", sent was \"%s\"", r->host, (ull)id, r->key,
                      key);
}

void oracle_judge_request(uint64_t id, struct tracked *t, const struct oracle_request *r, uint64_t now_ms)
{
    judge_timeout(id, t, r, now_ms);
    judge_previous(id, t, r);
    judge_metadata(id, t, r);
}
