"""A program that was compiled with shorter structs than the library's, as of older headers, and a program with longer ones, as of newer
headers, on today's library. The shorter ones lie before poison; the longer ones are refused as soon as a field is set that the library
does not know."""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile

import run

# What the older headers lack: the last 8 bytes of each struct.
LAST = {"torc_runtime_options": ["xds_domain"], "torc_channel_options": ["ring_size_cap"], "torc_call_options": ["explain", "lend_request"],
        "torc_tls_options": ["private_key_pem"], "torc_endpoint": ["weight"], "torc_resolver_factory": ["arg"]}
PROGRAM = """
#include <torc/torc.h>
#include "poisoned.h"
#ifdef NEWER
#define SET(s) ((s)->newer = newer)
#else
#define SET(s) ((void)(s))
#endif

static int newer;

static void *start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    struct torc_endpoint *e = poisoned_new(2 * sizeof(*e), "torc_endpoint[2]");
    (void)arg;
    for (int i = 0; i < 2; i++) {
        torc_endpoint_init(&e[i]);
        e[i].addresses = &rest;
        e[i].n_addresses = 1;
    }
    newer = 1;
    SET(&e[1]);
    printf("endpoints %d\\n", torc_resolver_report(listener, e, 2, NULL));
    newer = 0;
    SET(&e[1]);
    printf("endpoints %d\\n", torc_resolver_report(listener, e, 2, NULL));
    return NULL;
}

static void say(const char *what, torc_error **error)
{
    printf("%s %d\\n", what, torc_error_code(*error));
    torc_error_clear(error);
}

static void play(const char *address)
{
    struct torc_runtime_options *ro = POISONED(torc_runtime_options);
    struct torc_tls_options *to = POISONED(torc_tls_options);
    struct torc_resolver_factory *names = POISONED(torc_resolver_factory);
    struct torc_channel_options *co = POISONED(torc_channel_options);
    struct torc_call_options *o = POISONED(torc_call_options);
    const struct torc_resolver_factory *const resolvers[] = {names, NULL};
    char target[128];
    torc_error *error = NULL;
    torc_runtime_options_init(ro);
    SET(ro);
    torc_runtime *rt = torc_runtime_new(ro, &error);
    say("runtime", &error);
    torc_tls_options_init(to);
    SET(to);
    torc_credentials_unref(torc_credentials_tls(to, &error));
    say("tls", &error);
    torc_resolver_factory_init(names);
    names->scheme = "own";
    names->start = start;
    SET(names);
    torc_channel_options_init(co);
    co->credentials = torc_credentials_insecure();
    co->resolvers = resolvers;
    snprintf(target, sizeof(target), "own:%s", address);
    torc_channel *ch = torc_channel_new(rt, target, co, &error);
    say("factory", &error);
    co->resolvers = NULL;
    SET(co);
    torc_channel_free(torc_channel_new(rt, address, co, &error));
    say("channel", &error);
    torc_call_options_init(o);
    o->timeout_ms = 60000;
    o->wait_for_ready = TORC_ON;
    SET(o);
    if (!ch)
        ch = torc_channel_new(NULL, address, NULL, NULL);
    torc_result *r = torc_unary(ch, "a/b", "x", 1, o);
    int rc = torc_error_code(torc_result_error(r));
    printf("call %d %d\\n", rc == TORC_ESTATUS ? 0 : rc, rc && rc != TORC_ESTATUS ? 0 : torc_result_code(r));
    torc_result_free(r);
    torc_channel_free(ch);
    torc_runtime_free(rt);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    play(argv[1]);
#ifdef NEWER
    newer = 1;
    play(argv[1]);
#endif
    return poisoned_end();
}
"""
FINE = "runtime 0\ntls 0\nfactory 0\nchannel 0\nendpoints {}\nendpoints 0\ncall 0 0\n"
REFUSED = "runtime -9\ntls -9\nfactory -9\nchannel -9\ncall -9 0\n"


def change(include, edit):
    """Gives the body of each struct of LAST to edit(tag, body)."""
    seen = set()
    for header in include.glob("torc/*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for tag in LAST:
            match = re.search(rf"^struct {tag} \{{\n(.*?)^\}};", text, re.M | re.S)
            if match:
                seen.add(tag)
                text = text[:match.start(1)] + edit(tag, match[1]) + text[match.end(1):]
        header.write_text(text)
    if seen != LAST.keys():
        sys.exit(f"not in the headers: {LAST.keys() - seen}")


def shorter(tag, body):
    for field in LAST[tag]:
        body, n = re.subn(rf"^.*\b{field};\s*\n", "", body, flags=re.M)
        if n != 1:
            sys.exit(f"{tag}: no {field}")
    return body


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, edit, define, wanted in (("older", shorter, "", FINE.format(0)),
                                           ("newer", lambda _, body: body + "    int64_t newer;\n", "#define NEWER\n",
                                            FINE.format(-9) + REFUSED)):
            release = pathlib.Path(folder) / name
            shutil.copytree(run.HERE.parents[1] / "include", release / "include")
            change(release / "include", edit)
            (release / "program.c").write_text(define + PROGRAM)
            (release / "program.out").write_text(wanted)
            failed += run.run(release, build)
    return failed


if __name__ == "__main__":
    sys.exit(main())
