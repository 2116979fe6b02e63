/* The subcommands. argv[0] is the subcommand's name; the subcommand may reorder and replace the other texts of argv.
 * Each returns the exit status: 0 done, 1 failed, 2 usage error. `call --exit-status grpc` can also return 64 + a gRPC
 * status code. */
#ifndef TORC_COMMANDS_H
#define TORC_COMMANDS_H

int cmd_call(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_describe(int argc, char **argv);
int cmd_backend(int argc, char **argv);
int cmd_serve_xds(int argc, char **argv);
int cmd_xds(int argc, char **argv);
int cmd_bootstrap(int argc, char **argv);
int cmd_ring(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_demo(int argc, char **argv);

#endif
