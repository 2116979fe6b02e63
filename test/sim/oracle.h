/* The oracle: judges from the outside whether a client does only what gRPC's texts allow. It is told of changes of the
 * mesh that clients heed, of faults, of attempts to connect, of load reports and client status, and of calls: their
 * begins, their ends, and what backends get of them. Arguments are borrowed. Of the library it knows the public headers
 * alone. oracle.c has the rules. A violation goes to the trace (sim_violation). A process has one oracle, from
 * oracle_begin to oracle_end. All functions run on the world's one thread. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/mesh.h"

/* How long after the last disturbance the rules of a settled world begin to hold. */
#define ORACLE_SETTLED_MS 60000
/* The longest backoff of a channel's connections, without SIM_FEATURE_LONG_BACKOFF. */
#define ORACLE_BACKOFF_MAX_MS 4000
/* The first backoff: the default in torc/channel.h (connection-backoff.md). */
#define ORACLE_BACKOFF_MS 1000

struct oracle_call {
    unsigned service, runtime;
    int key; /* of the header x-key; -1: none */
    enum sim_kind kind;
    unsigned n_messages;          /* of a stream: those that the client sends, or asks a server stream for */
    int session, session_cluster; /* host and cluster of its cookie; -1: none */
    int64_t timeout_ms;           /* that the application asks for; < 0: none */
    unsigned delay_ms;            /* how long a backend takes */
    int asked_code;               /* the code that a backend is to answer with; 0: OK */
    bool wait_for_ready, cancelled, freed;
    int pushback_ms;   /* that a sick backend sends: SIM_NO_PUSHBACK, -1 (no further try), or a time */
    unsigned refusals; /* how often backends refuse the call without looking at it */
    bool routed;       /* when it began, its client had heard of the last change of the routes */
};

struct oracle_outcome {
    int code;
    const char *message, *peer;
    const char *response; /* with a NUL; NULL: none */
    uint32_t attempts;
    unsigned seen;                /* how often backends took the call */
    int layer;                    /* enum torc_layer */
    int session, session_cluster; /* host and cluster of the cookie that came; -1: none */
};

/* A message of a stream, as it came. */
struct oracle_message {
    int from; /* the host */
    uint64_t id;
    unsigned index;
    bool whole;
};

/* Begins a run, with all hosts up. The mesh is copied. connect_timeout_ms: the channels' option. */
void oracle_begin(const struct sim_mesh *mesh, uint64_t connect_timeout_ms, uint64_t now_ms);
/* The mesh, which is copied, has changed: good versions of resources, a listener that clients drop or never accept, or
 * other addresses of a name. Clients are about to hear of it. A disturbance. */
void oracle_changed(const struct sim_mesh *mesh, uint64_t now_ms);
/* Something happened that may cost calls, at this moment or until this moment, which may lie ahead. */
void oracle_disturbed(uint64_t now_ms);
/* Returns whether nothing has disturbed the world for ORACLE_SETTLED_MS. */
bool oracle_settled(uint64_t now_ms);
/* A host takes connections from now on, or does not: it refuses them, or is silent. A disturbance. */
void oracle_host(unsigned host, bool up, bool silent, uint64_t now_ms);
/* Look-ups of a cluster's name fail, or no longer. unknown: they have failed from the start, so that no client knows
 * the name. A disturbance. */
void oracle_name(unsigned cluster, bool unknown, uint64_t now_ms);
/* Returns whether clients may know the name. */
bool oracle_name_known(unsigned cluster);
/* The name of a cluster is looked up. */
void oracle_name_asked(unsigned cluster, uint64_t now_ms);
/* The hosts of a cluster's name, which channels used, sent GOAWAY on all connections at lost_ms. */
void oracle_name_lost(unsigned cluster, uint64_t lost_ms);
/* Judges whether the name was looked up since the moment of oracle_name_lost, if a look-up was due. */
void oracle_judge_look_up(unsigned cluster, uint64_t now_ms);
/* A host sends GOAWAY on all of its connections. hasty: it does not look at the requests on their way. No
 * disturbance. */
void oracle_goaway(unsigned host, bool hasty, uint64_t now_ms);
/* A host answers every call with the code from now on; 0: it is well again. A disturbance. */
void oracle_sick(unsigned host, int code, uint64_t now_ms);

/* The channel of the runtime to the service was replaced by a new one. */
void oracle_channel(unsigned runtime, unsigned service, uint64_t now_ms);
/* Judges the number of connections to the second control plane, where there must be one: in a settled world that lost
 * the first control plane while a client lacked a listener. */
void oracle_no_fallback(size_t connections);
/* A call, which is copied, begins. Returns its id. */
uint64_t oracle_call_begins(const struct oracle_call *call, uint64_t now_ms);
/* The application cancels the call, or frees its channel: it may end with CANCELLED. */
void oracle_call_cancelled(uint64_t id);
/* The application gave the handle up: no outcome may come. */
void oracle_call_freed(uint64_t id, uint64_t now_ms);
/* A request as a backend got it. */
struct oracle_request {
    unsigned host;
    bool has_timeout;
    int64_t left_ms;            /* of grpc-timeout, which runs since the headers came */
    unsigned previous_attempts; /* of grpc-previous-rpc-attempts; 0: none */
    const char *authority, *key;
};
/* A backend took the call. */
void oracle_call_seen(uint64_t id, const struct oracle_request *request, uint64_t now_ms);
/* A backend refused the call without looking at it (REFUSED_STREAM). */
void oracle_call_refused(uint64_t id, unsigned host, uint64_t now_ms);
/* The application got a message of the call's stream. */
void oracle_call_message(uint64_t id, const struct oracle_message *m);
/* The application got the call's outcome. */
void oracle_call_ends(uint64_t id, const struct oracle_outcome *outcome, uint64_t now_ms);
/* The runtime begins an attempt to connect to the host, or one was refused. `runtime`: any pointer that tells runtimes
 * apart. */
void oracle_connect_begins(const void *runtime, unsigned host, uint64_t now_ms);
void oracle_connect_refused(const void *runtime, unsigned host);
/* Judges the number of attempts to connect to a host over a settled period: between two of them, a channel waits for
 * ORACLE_BACKOFF_MAX_MS, less a fifth at most by jitter. */
void oracle_attempts(unsigned host, uint64_t attempts, uint64_t period_ms, unsigned channels);
/* Judges the calls that run, if the world has settled. */
void oracle_judge_waiting(uint64_t now_ms);
/* Judges the number of connections to the second control plane, where there must be none: in a settled world whose
 * first control plane serves every listener, or was lost while clients had all that they asked for. */
void oracle_fallback(size_t connections);
/* The sums of all load reports. whole: no report was lost. */
struct oracle_loads {
    uint64_t issued, succeeded, failed, dropped;
    bool whole;
};
/* Judges the sums, when all calls have ended and their reports have come. */
void oracle_loads(const struct oracle_loads *loads);

/* A resource as CSDS shows it. */
struct oracle_resource {
    enum sim_resource kind;
    unsigned which;
    enum sim_served served; /* what the control plane has served for at least ORACLE_SETTLED_MS */
    int client_status;      /* envoy.admin.v3.ClientResourceStatus; 0: it is not shown */
    bool has_error;
    bool incremental; /* the ADS stream is */
};
/* Judges how a client shows a resource. */
void oracle_resource(const struct oracle_resource *r);

/* Judges the end of the run: every call must have ended or been freed, and the shares must be right (oracle_shares.c).
 * Frees the calls. */
void oracle_end(void);

#endif
