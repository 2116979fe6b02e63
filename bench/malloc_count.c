/* Linked into a client of bench/rpc: counts the calls of malloc, calloc and realloc in the measured period, and prints
 * their number per RPC on a line before the client's own. Prints the number of each library with at least 0.001 calls
 * per RPC on standard error. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

enum { SITES = 4096 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

/* Call sites that allocate, by return address, in a hash table. The counted runs have one thread. */
static struct site {
    void *at;
    uint64_t n;
} sites[SITES];
static bool counting;

/* A call site that finds the table full is not counted. */
static void count(void *at)
{
    size_t i = ((uintptr_t)at * 0x9e3779b97f4a7c15u) >> 52;
    for (size_t k = 0; counting && k < SITES; k++, i = (i + 1) % SITES) {
        if (sites[i].at && sites[i].at != at)
            continue;
        sites[i].at = at;
        sites[i].n++;
        return;
    }
}

void *malloc(size_t size)
{
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_realloc(p, size);
}

struct library {
    const char *name;
    uint64_t n;
};

/* Adds the sites up by library and prints the sums. Libraries after the 32nd are left out. */
static void report(const struct client *c)
{
    struct library libraries[32];
    size_t n = 0;
    for (size_t i = 0; i < SITES; i++) {
        Dl_info info;
        if (!sites[i].at)
            continue;
        const char *name = dladdr(sites[i].at, &info) && info.dli_fname ? info.dli_fname : "?";
        name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
        size_t k = 0;
        while (k < n && strcmp(libraries[k].name, name) != 0)
            k++;
        if (k == 32)
            continue;
        if (k == n)
            libraries[n++] = (struct library){name, 0};
        libraries[k].n += sites[i].n;
    }
    double all = 0;
    for (size_t k = 0; k < n; k++) {
        double each = (double)libraries[k].n / (double)c->rpcs;
        all += each;
        if (each >= 0.001)
            fprintf(stderr, "allocations per RPC, %u outstanding: %s %.3f\n", c->outstanding, libraries[k].name, each);
    }
    printf("%.4f\n", all);
}

static void on_client(const struct client *c, bool over)
{
    counting = !over;
    if (over && c->rpcs)
        report(c);
}

static __attribute__((constructor)) void install(void)
{
    client_hook = on_client;
}
