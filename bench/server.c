/* Starts the servers of the benchmarks as processes and reads their ports; runs the clients and reads their numbers.
 *
 * Servers run on the last core but one, since clients that pin themselves take the last one. The first line that a
 * server prints ends in ":PORT". A server's temporary file is a PEM certificate with its key, or the resources of a
 * mesh. server_stop removes that file, and so does a start that fails. The functions write static memory and the
 * environment, so a program calls them from one thread. */
#include "server.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "certificate.h"
#include "measure.h"

const char *server_own_folder(void)
{
    static char self[512];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0)
        return NULL;
    self[len] = 0;
    return dirname(self);
}

static void end_process(pid_t pid)
{
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Starts the command `torc` and reads the port from the first line that it prints. `arguments` begins with "torc" and
 * ends with NULL. Returns false if no port came, with a message unless the system has no pipe or process. */
static bool start_command(struct server *s, const char *const *arguments)
{
    int out[2];
    char line[256] = "", program[600];
    snprintf(program, sizeof(program), "%s/../torc", server_own_folder());
    if (pipe(out) != 0 || (s->pid = fork()) < 0)
        return false;
    if (s->pid == 0) {
        measure_pin(1);
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execv(program, (char *const *)arguments);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    bool ok = f && fgets(line, sizeof(line), f);
    if (f)
        fclose(f);
    char *colon = strrchr(line, ':');
    line[strcspn(line, "\n")] = 0;
    if (ok && colon)
        snprintf(s->port, sizeof(s->port), "%s", colon + 1);
    else
        fprintf(stderr, "bench: cannot start %s %s\n", program, arguments[1]);
    if (!ok || !colon)
        end_process(s->pid);
    return ok && colon;
}

bool server_start(struct server *s, const char *option, const char *value)
{
    const char *const arguments[] = {"torc",   "backend", "--listen", "0.0.0.0:0", "--max-concurrent-streams",
                                     "100000", option,    value,      NULL};
    s->resources[0] = 0;
    return start_command(s, arguments);
}

bool server_start_tls(struct server *s)
{
    char path[] = "/tmp/bench_tls.XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = f && certificate_write(f);
    if (f)
        fclose(f);
    const char *const arguments[] = {"torc",   "backend",    "--listen", "127.0.0.1:0", "--max-concurrent-streams",
                                     "100000", "--tls-cert", path,       "--tls-key",   path,
                                     NULL};
    ok = ok && start_command(s, arguments);
    snprintf(s->resources, sizeof(s->resources), "%s", path);
    if (!ok)
        unlink(path);
    return ok;
}

static const char mesh[] =
    "version_info: '1'\n"
    "resources:\n"
    "- '@type': type.googleapis.com/envoy.config.listener.v3.Listener\n"
    "  name: bench\n"
    "  api_listener: {api_listener: {'@type': type.googleapis.com/envoy.extensions.filters.network."
    "http_connection_manager.v3.HttpConnectionManager,\n"
    "    http_filters: [{name: router, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http."
    "router.v3.Router}}],\n"
    "    route_config: {name: bench, virtual_hosts: [{name: all, domains: ['*'], routes: [{match: {prefix: ''},\n"
    "      route: {cluster: bench, hash_policy: [{filter_state: {key: io.grpc.channel_id}}]}}]}]}}}\n"
    "- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
    "  name: bench\n"
    "  type: EDS\n"
    "  eds_cluster_config: {eds_config: {ads: {}}}\n"
    "  circuit_breakers: {thresholds: [{max_requests: 100000}]}\n"
    "  lb_policy: %s\n"
    "- '@type': type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
    "  cluster_name: bench\n"
    "  endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{endpoint: {address:\n"
    "    {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]\n";

bool server_start_xds(struct server *s, const char *backend_port, const char *lb_policy)
{
    char bootstrap[256], path[] = "/tmp/bench_mesh.XXXXXX.yaml";
    int fd = mkstemps(path, 5);
    bool ok = fd >= 0 && dprintf(fd, mesh, lb_policy, backend_port) > 0;
    const char *const arguments[] = {"torc", "serve-xds", "--listen", "127.0.0.1:0", "--resources", path, NULL};
    ok = ok && start_command(s, arguments);
    snprintf(s->resources, sizeof(s->resources), "%s", path);
    if (fd >= 0)
        close(fd);
    if (!ok) {
        unlink(path);
        return false;
    }
    snprintf(bootstrap, sizeof(bootstrap),
             "{\"xds_servers\":[{\"server_uri\":\"127.0.0.1:%s\",\"channel_creds\":[{\"type\":\"insecure\"}],"
             "\"server_features\":[\"xds_v3\"]}],\"node\":{\"id\":\"bench\"}}",
             s->port);
    unsetenv("GRPC_XDS_BOOTSTRAP");
    setenv("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap, 1);
    return true;
}

void server_stop(struct server *s)
{
    end_process(s->pid);
    if (s->resources[0])
        unlink(s->resources);
}

bool server_run_command(const char *command, double *numbers, unsigned n)
{
    FILE *p = popen(command, "r");
    bool ok = p != NULL;
    for (unsigned i = 0; ok && i < n; i++)
        ok = fscanf(p, "%lf", &numbers[i]) == 1;
    if (p && pclose(p) != 0)
        ok = false;
    if (!ok)
        fprintf(stderr, "bench: %s failed\n", command);
    return ok;
}

bool server_run_client(const char *name, double *numbers, unsigned n, const char *fmt, ...)
{
    char command[1024];
    va_list arguments;
    int at = snprintf(command, sizeof(command), "'%s/%s' ", server_own_folder(), name);
    va_start(arguments, fmt);
    vsnprintf(command + at, sizeof(command) - (size_t)at, fmt, arguments);
    va_end(arguments);
    return server_run_command(command, numbers, n);
}

bool server_have_client(const char *name, const char *title)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", server_own_folder(), name);
    if (access(path, X_OK) == 0)
        return true;
    printf("skipped: %s (%s was not built: what it needs is not installed)\n", title, name);
    return false;
}
