#include "support/kits/server_pipe.h"

void kit_server_pipe_init(struct kit_server_pipe *k, const struct tc_server_opts *opts)
{
    *k = (struct kit_server_pipe){.loop =
                                      tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 3})};
    k->server = tc_server_new(k->loop, opts);
}

void kit_server_pipe_connect(struct kit_server_pipe *k, size_t read_chunk)
{
    k->pipe = fake_pipe_new(k->loop);
    fake_pipe_set_read_chunk(k->pipe, read_chunk);
    k->peer = fake_h2_new(k->pipe, 1, false);
    tc_server_accept(k->server, fake_pipe_end(k->pipe, 0));
    fake_h2_start(k->peer);
    tc_loop_drain(k->loop);
}

void kit_server_pipe_fini(struct kit_server_pipe *k)
{
    if (k->server)
        tc_server_free(k->server);
    tc_loop_drain(k->loop);
    fake_h2_free(k->peer);
    fake_pipe_free(k->pipe);
    tc_loop_free(k->loop);
}
