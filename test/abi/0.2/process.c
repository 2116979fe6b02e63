/* The functions of the process and for bindings: allocator, logs, options by name, arenas, texts and numbers. */
#include <torc/torc.h>

#include "poisoned.h"

static int allocated, lines, released;

static void *counted_malloc(size_t size)
{
    __atomic_add_fetch(&allocated, 1, __ATOMIC_RELAXED);
    return malloc(size);
}

static void on_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level, (void)module, (void)message, (void)arg;
    lines++;
}

static void on_release(void *arg)
{
    ++*(int *)arg;
}

static void options_by_name(const char *address)
{
    torc_error *error = NULL;
    torc_options *options = torc_options_new("torc_channel_options", &error);
    printf("set %d\n", torc_options_set(options, "keepalive_time_ms", "20000", &error));
    printf("set_pointer %d\n", torc_options_set_pointer(options, "credentials", torc_credentials_insecure(), &error));
    printf("unknown %d,", torc_options_set(options, "nothing", "1", &error));
    printf(" %d\n", torc_error_code(error));
    torc_error_clear(&error);
    torc_channel *channel = torc_channel_new(NULL, address, torc_options_data(options), &error);
    torc_result *result = torc_unary(channel, "echo.Echo/Say", "x", 1, NULL);
    printf("unary %s\n", torc_status_code_name(torc_result_code(result)));
    torc_result_free(result);
    torc_channel_free(channel);
    torc_options_free(options);
}

static void numbers(void)
{
    printf("code 14 %s, INTERNAL %d, SHUTDOWN %d\n", torc_status_code_name(14), torc_status_code_from_name("INTERNAL"),
           TORC_CONNECTIVITY_SHUTDOWN);
    printf("texts %d %d\n", torc_strerror(-1)[0] != 0, torc_strerror(-1000)[0] != 0);
    printf("time left %d\n", torc_time_left(torc_time_ms() - 1) < 0);
    torc_error *error = torc_error_new(TORC_ETIMEDOUT, TORC_LAYER_DEADLINE, NULL);
    printf("error %d %s %d\n", torc_error_code(error), torc_status_code_name(torc_error_status(error)),
           torc_error_layer(error));
    torc_error_free(error);
    torc_arena *arena = torc_arena_new(100);
    printf("arena %d %d\n", torc_arena_alloc(arena, 10) != NULL, torc_arena_alloc(arena, 1000) != NULL);
    torc_arena_free(arena);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct torc_allocator *allocator = POISONED(torc_allocator);
    *allocator = (struct torc_allocator){TORC_SIZE(torc_allocator), counted_malloc, calloc, realloc, free};
    printf("allocator %d\n", torc_set_allocator(allocator));
    printf("twice %d\n", torc_set_allocator(allocator));

    struct torc_log_sink *sink = POISONED(torc_log_sink);
    struct torc_runtime_options *options = POISONED(torc_runtime_options);
    *sink = (struct torc_log_sink){TORC_SIZE(torc_log_sink), on_line, on_release, &released, "debug"};
    options->size = sizeof(*options);
    options->mode = TORC_RUNTIME_CALLER;
    options->log_sink = sink;
    torc_runtime *runtime = torc_runtime_new(options, NULL);
    torc_channel *channel = torc_channel_new(runtime, argv[1], NULL, NULL);
    printf("connect %d\n", torc_channel_connect(channel, 60000));
    torc_channel_free(channel);
    printf("poll %d, lines %d\n", torc_runtime_poll(runtime, 0) >= 0, lines > 0);
    printf("fd %d, timeout %d\n", torc_runtime_fd(runtime) >= 0, torc_runtime_timeout_ms(runtime) >= -1);
    torc_runtime_free(runtime);
    printf("released %d\n", released);
    printf("levels %d %d\n", torc_log_set_levels("warn,xds=debug"), torc_log_set_levels("loud"));
    options_by_name(argv[1]);
    numbers();
    printf("allocated %d\n", __atomic_load_n(&allocated, __ATOMIC_RELAXED) > 0);
    return poisoned_end();
}
