/* The state of a run, for workload.c (its life), calls.c (its calls), changes.c (faults, changes of the mesh), scenes.c
 * (steps that belong together) and reports.c (load reports, client status). workload.c owns the state. */
#ifndef SIM_WORKLOAD_INTERNAL_H
#define SIM_WORKLOAD_INTERNAL_H

#include "base/random.h"
#include "base/vec.h"
#include "sim/app.h"
#include "sim/mesh.h"
#include "sim/workload.h"
#include "testing/net.h"

/* TIME_TO_HEAR_MS: more than the longest backoff of a client. That long after the return of a control plane, every
 * client has heard from it. */
enum { SIM_RUNTIMES = 2, TIME_TO_HEAR_MS = 150000 };

struct sim_client;

struct client_call {
    struct sim_client *client;
    struct app_call *app; /* the handle; not valid once `freed` */
    uint64_t id;
    unsigned runtime, service;
    size_t message_size;
    bool over;  /* its outcome came */
    bool freed; /* a step has freed the handle; the struct waits for the next sweep */
};

struct sim_client {
    const struct sim_run *run; /* borrowed */
    uint64_t features;         /* that are on: bits by enum sim_feature */
    int64_t connect_timeout_ms;
    struct sim_mesh mesh;
    enum sim_served served[SIM_RESOURCES][SIM_CLUSTERS];
    uint64_t served_ms[SIM_RESOURCES][SIM_CLUSTERS]; /* since when */
    bool control_plane_down;                         /* the first one */
    bool fell_back;                                  /* control_plane_down since the start: clients have the fallback */
    bool had_all;                  /* when control_plane_down last changed, clients had all that they asked for */
    bool lacked;                   /* when control_plane_down last changed, clients lacked a listener */
    bool refused[SIM_SERVICES];    /* the service's listener has been bad since the start */
    bool name_fails[SIM_CLUSTERS]; /* look-ups of the cluster's name fail */
    bool sick[SIM_HOSTS];          /* the host fails every call */
    /* The last good change, removal of a listener or new channel; the last return of the control plane. */
    uint64_t changed_ms, back_ms;
    uint64_t routed_ms;        /* the last change of a route; 0: none */
    bool unheard;              /* clients may not have heard of a change */
    struct app_domain *domain; /* of client_begin alone, which frees the handle; NULL: one runtime */
    struct app_runtime *runtimes[SIM_RUNTIMES];
    struct app_channel *channels[SIM_RUNTIMES][SIM_SERVICES];
    size_t n_runtimes;
    char *cookies[SIM_SERVICES][SIM_HOSTS]; /* "sid=...": the last that a host of the service gave; NULL: none */
    TC_VEC(struct client_call *) calls;     /* owned; those that run, and those that the next sweep frees */
};

static inline bool sim_feature_on(const struct sim_client *c, enum sim_feature f)
{
    return (c->features >> f) & 1;
}

/* The steps that start a few calls, cancel one that runs, or free one that runs. */
void sim_step_calls(struct sim_client *c, struct tc_rng *rng);
void sim_step_cancel(struct sim_client *c, struct tc_rng *rng);
void sim_step_free(struct sim_client *c, struct tc_rng *rng);
struct oracle_call;
/* Starts a call as *o describes it. Sets o->delay_ms and o->routed. */
void sim_call_start(struct sim_client *c, struct tc_rng *rng, struct oracle_call *o);
/* Starts a unary call with a key, without a deadline, that the backend is not asked to fail. */
void sim_call_plain(struct sim_client *c, struct tc_rng *rng, unsigned service, unsigned runtime, unsigned key);
/* Frees the calls that are over or that a step has freed; with `all` the others, too. */
void sim_calls_sweep(struct sim_client *c, bool all);
/* Frees the cookies and the list of calls, which sim_calls_sweep has emptied. */
void sim_calls_end(struct sim_client *c);
/* Tells the oracle that the running calls of a channel may end as cancelled: the channel is about to be freed. */
void sim_calls_lose_channel(struct sim_client *c, unsigned runtime, unsigned service);
/* Shows the oracle what the clients know of their resources (CSDS), and what they reported (LRS). */
void sim_show_resources(const struct sim_client *c);
void sim_show_loads(void);
/* Tells the oracle of faults of the network, which may come by themselves, or last; and that the world is disturbed
 * while the control plane is down and clients have not heard of a change. */
void sim_note_disturbance(const struct sim_client *c);

/* Replaces a channel by a new one, if a new one can get all that it needs. */
void sim_step_channel(struct sim_client *c, struct tc_rng *rng);

/* Makes the mesh of the seed. */
void sim_mesh_make(struct sim_client *c, struct tc_rng *rng);
/* Puts all resources of the mesh into the control planes, and sets the clusters' names. */
void sim_mesh_serve(const struct sim_client *c);
/* One fault, or the end of one; nothing if the chosen kind is off or not possible now. */
void sim_step_fault(struct sim_client *c, struct tc_rng *rng);
/* One change of a resource: good, bad, deleted, restored or neutral; nothing where the chosen kind is not allowed. */
void sim_step_change(struct sim_client *c, struct tc_rng *rng);
/* Makes the first control plane unreachable, or reachable again. */
void sim_control_plane_turn(struct sim_client *c, bool down);
/* Serves the resource with bytes that differ in nothing that counts. */
void sim_change_neutral(struct sim_client *c, enum sim_resource kind, unsigned which);
/* A scene: steps that belong together (scenes.c). */
void sim_step_scene(struct sim_client *c, struct tc_rng *rng);
/* Leaves the world alone for longer than ORACLE_SETTLED_MS, makes calls, and has the oracle judge what must hold in a
 * calm world. */
void sim_step_calm(struct sim_client *c, struct tc_rng *rng);
/* Lets time pass in the world. */
void sim_pass_ms(uint64_t ms);
/* Sets whether a host is up, refuses or is silent, and tells the oracle. The connections of a host that refuses are
 * reset; those of a silent host fall silent. */
void sim_host_turn(unsigned host, enum tc_host_mode mode);
/* Makes a host fail every call, or be well again, and tells the oracle. */
void sim_host_sicken(struct sim_client *c, unsigned host, bool sick);
/* Draws new localities with new endpoints for a cluster, from a priority on, and new drops, and counts the cluster's
 * version up. Serves nothing. */
void sim_endpoints_make(struct sim_client *c, struct sim_cluster *cluster, unsigned from, struct tc_rng *rng);
/* Serves the resource as the mesh has it now, and tells the oracle. */
void sim_change_served(struct sim_client *c, enum sim_resource kind, unsigned which);
/* Removes the listener. For runs with SIM_FEATURE_DATA_ERRORS: in others clients keep the last listener (A88). */
void sim_listener_remove(struct sim_client *c, unsigned service);
/* Returns whether routes may change: every resource is good, and every name that clients knew is still found. */
bool sim_routes_may_change(const struct sim_client *c);
/* Returns whether a listener has been bad since the start. */
bool sim_lacks_listener(const struct sim_client *c);
/* Returns whether look-ups of any name fail. */
bool sim_any_name_fails(const struct sim_client *c);
/* Look-ups of a cluster's name fail from now on, or no longer. known: all who use the name have its addresses;
 * unused without `fails`. */
void sim_name_turn(struct sim_client *c, unsigned cluster, bool fails, bool known);
/* Gives a cluster's name the addresses of the cluster's endpoints, which have changed. */
void sim_name_move(struct sim_client *c, unsigned cluster);
/* A host sends GOAWAY on all of its connections (servers_goaway), and the oracle is told. */
void sim_host_goaway(unsigned host, bool hasty);
/* The first faults, before clients begin: listeners that are bad, names, and a control plane that nobody ever
 * reached. */
void sim_first_faults(struct sim_client *c, struct tc_rng *rng);
/* Ends the faults of hosts, names and the control plane, and restores every resource. Connections that are half-open
 * stay so. */
void sim_heal(struct sim_client *c);

#endif
