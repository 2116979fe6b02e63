/* Faults of single connections. The caller draws `which`; nothing here draws random numbers. */
#include "sim/faults.h"

#include "sim/oracle.h"
#include "sim/trace.h"
#include "testing/net_internal.h"

static uint64_t last_fault_ns;

void sim_faults_begin(void)
{
    last_fault_ns = 0;
}

void sim_net_note_fault(uint64_t until_ns)
{
    last_fault_ns = TC_MAX(last_fault_ns, until_ns);
}

void sim_net_note_connect(const void *loop, const char *address, bool refused)
{
    int host = sim_host_of(address);
    if (host >= 0 && refused)
        oracle_connect_refused(loop, (unsigned)host);
    else if (host >= 0)
        oracle_connect_begins(loop, (unsigned)host, tc_world_now_ms());
}

uint64_t sim_net_last_fault_ns(void)
{
    TC_LIST_FOREACH(it, tc_net_connections())
    {
        const struct tc_net_connection *c = TC_CONTAINER_OF(it, struct tc_net_connection, link);
        if (c->silent && !c->ends[0].closed)
            return UINT64_MAX;
    }
    return last_fault_ns;
}

size_t sim_net_open(void)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, tc_net_connections())
    n += tc_net_connection_is_open(TC_CONTAINER_OF(it, struct tc_net_connection, link));
    return n;
}

static struct tc_net_connection *net_choose(uint64_t which)
{
    size_t open = sim_net_open(), at = open > 0 ? (size_t)(which % open) : 0;
    TC_LIST_FOREACH(it, tc_net_connections())
    {
        struct tc_net_connection *c = TC_CONTAINER_OF(it, struct tc_net_connection, link);
        if (tc_net_connection_is_open(c) && at-- == 0)
            return c;
    }
    return NULL;
}

bool sim_net_reset_one(uint64_t which)
{
    struct tc_net_connection *c = net_choose(which);
    if (!c)
        return false;
    sim_story("connection %llu to %s is reset", (unsigned long long)c->id, c->address);
    sim_net_note_fault(tc_world_now_ns());
    tc_net_connection_reset(c);
    return true;
}

bool sim_net_stall_one(uint64_t which, uint64_t us)
{
    struct tc_net_connection *c = net_choose(which);
    if (!c)
        return false;
    sim_story("connection %llu to %s stands still for %llu ms", (unsigned long long)c->id, c->address,
              (unsigned long long)(us / 1000));
    c->stalled_until_ns = tc_world_now_ns() + us * 1000;
    sim_net_note_fault(c->stalled_until_ns);
    return true;
}

bool sim_net_cut_one(uint64_t which, size_t after_bytes)
{
    struct tc_net_connection *c = net_choose(which);
    if (!c)
        return false;
    c->cut_after = after_bytes;
    return true;
}

bool sim_net_silence_one(uint64_t which)
{
    struct tc_net_connection *c = net_choose(which);
    if (!c)
        return false;
    sim_story("connection %llu to %s is half-open from now on", (unsigned long long)c->id, c->address);
    tc_host_add_silenced(c->address);
    sim_net_note_fault(tc_world_now_ns());
    tc_net_connection_silence(c);
    return true;
}
