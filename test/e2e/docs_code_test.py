"""Every block of C in README and docs compiles without a warning: programs as they stand, fragments in a function, behind the declarations
of names that a page leaves to its reader. Blocks of JSON are JSON, and the bootstrap of docs/operations/xds.md is one.
The LB policy of docs/guide/lb-policy.md runs with its settings."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, SOURCE, TORC, WAIT, blocks, check, main, running

# What the reader of a page has: declarations, and the names in the function around its fragments.
READER = {
    "docs/guide/calls.md": ("void use(const void *data, size_t size);",
                            "torc_channel *channel, const void *request, size_t size, torc_error *error, int code, "
                            "struct torc_call_options options"),
    "docs/guide/choosing-a-policy.md": ("", "torc_error *error"),
    "docs/guide/connections.md": ("void start_connecting(void *arg, const char *address, torc_dial *dial);\n"
                                  "void watch_registry(void *arg, const char *name, torc_resolver_listener *listener);\n"
                                  "void unwatch_registry(void *arg);",
                                  "torc_dial *dial, int fd, torc_resolver_listener *listener, void *registry, torc_credentials *credentials, "
                                  "torc_error *error"),
    "docs/guide/deadlines.md": ("", "torc_channel *channel, const char *method, const void *request, size_t size, "
                                "struct torc_call_options options, torc_result **results, torc_server_call *call, torc_error *error, "
                                "const char *service_config"),
    "docs/guide/interceptors.md": ("void start_to_ask(void *arg, const char *method, torc_pending *pending);", "torc_credentials *credentials"),
    "docs/guide/lb-policy.md": ("#include <jansson.h>", "torc_error *error"),
    "docs/guide/servers.md": ('#include "helloworld.torc.h"', "torc_server *server, torc_server_call *call, torc_server_call **kept, torc_error *error"),
    "docs/guide/stubs.md": ('#include "google/rpc/error_details.pb-c.h"\n#include "helloworld.torc.h"\n#include "order.torc.h"',
                            "torc_server_call *call, const torc_result *result, torc_arena *arena, torc_channel *channel, torc_error *error, "
                            "struct torc_call_options options, Shop__Order order"),
    "docs/guide/testing.md": ("int order_find(torc_channel *shop, const char *id, char *text);\nvoid sleep_really(int64_t ms);\n"
                              "extern torc_testing *world;", "char *text, const char *mesh, const char *one_endpoint"),
    "docs/guide/threads.md": ("#include <sys/epoll.h>\nvoid count(void *counter);",
                              "torc_runtime *runtime, void *counter, torc_error *error, int epoll, int done, torc_runtime **runtimes, "
                              "torc_channel **channels"),
    "docs/operations/logs.md": ("", ""),
    "docs/operations/security.md": ("", "torc_error *error"),
    "docs/operations/troubleshooting.md": ("", "torc_channel *channel"),
    "docs/operations/xds.md": ("", "torc_server *server, torc_error *error, FILE *file"),
}
# Compiled, and played, by test/unit/lb/policies/example_test.c (lint_example_policy).
ELSEWHERE = {"docs/internals/adding-a-policy.md"}
HEADERS = "#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n#include <torc/torc.h>\n#include <torc/testing.h>\n"
FUNCTION = r"^static [^;{}]*\)[^\n;]*\n?\{(?:[^\n]*\}|.*?^\})[^\n]*\n"
TYPE = r"^(?:struct \w+|enum) \{(?:[^\n]*\}|.*?^\});\n"
OUTSIDE = re.compile(f"{TYPE}|{FUNCTION}", re.S | re.M)


def pages():
    names = sorted(path.relative_to(SOURCE).as_posix() for path in pathlib.Path(SOURCE, "docs").rglob("*.md"))
    return ["README.md", *names]


def as_source(page, text):
    """The block as a file of C. Types and functions of a fragment stand before the function that has its statements; lines of "..." stand for the
    reader's own."""
    if "#include" in text:
        return text
    declarations, parameters = READER[page]
    text = re.sub(r"^\.\.\.$", "", text, flags=re.M)
    functions = "".join(OUTSIDE.findall(text))
    head = f"void fragment({parameters or 'void'})"
    # A block of its own: a fragment may declare what another one of the page gets.
    return f"{HEADERS}{declarations}\n{functions}\n{head};\n{head}\n{{\n{{\n{OUTSIDE.sub('', text)}\n}}\n}}\n"


def generated(folder):
    """What protoc-gen-torc writes for the .proto files of the pages, and of examples/errors."""
    errors = os.path.join(SOURCE, "examples", "errors")
    protos = {"order.proto": blocks("docs/guide/stubs.md", "proto")[1], "helloworld.proto": blocks("docs/guide/stubs.md", "proto")[0]}
    for name, text in protos.items():
        pathlib.Path(folder, name).write_text(text, encoding="utf-8")
    imports = [folder, errors, os.path.join(SOURCE, "proto")]
    done = subprocess.run(["protoc", f"--plugin=protoc-gen-torc={BUILD}/protoc-gen-torc", f"--torc_out=messages,reflection:{folder}",
                           *(f"-I{name}" for name in imports), *protos, "google/rpc/error_details.proto", "google/protobuf/timestamp.proto",
                           "google/protobuf/duration.proto"], capture_output=True, text=True, timeout=WAIT, check=False)
    check(done.returncode == 0, done.stderr)


def test_c():
    count, faults = 0, []
    with tempfile.TemporaryDirectory() as folder:
        generated(folder)
        for page in pages():
            for text in blocks(page, "c") if page not in ELSEWHERE else []:
                source = as_source(page, text)
                # A fragment shows functions and names that nothing in it uses.
                done = subprocess.run(["cc", "-xc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter", "-fsyntax-only",
                                       "-I", folder, "-I", os.path.join(SOURCE, "include"), "-"],
                                      input=source, capture_output=True, text=True, timeout=WAIT, check=False)
                faults += [f"{page}:\n{source}\n{done.stderr}"] * (done.returncode != 0)
                count += 1
    check(not faults, "\n".join(faults))
    check(count > 20, f"{count} blocks")
    print(f"{count} blocks of C")


SETTINGS_MAIN = r"""
static void call_as(torc_channel *channel, const char *user, char peer[64])
{
    torc_metadata *metadata = torc_metadata_new();
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 60000, .wait_for_ready = true, .metadata = metadata};
    torc_metadata_add_string(metadata, "user", user);
    torc_result *result = torc_unary(channel, "echo.Echo/Say", "", 0, &options);
    snprintf(peer, 64, "%s", torc_result_peer(result));
    torc_result_free(result);
    torc_metadata_free(metadata);
}

int main(int argc, char **argv)
{
    torc_error *error = NULL;
    char peers[2][64] = {"", ""};
    options.credentials = torc_credentials_insecure();
    options.service_config_json = argv[2];
    torc_channel *channel = torc_channel_new(NULL, argv[1], &options, &error);
    if (!channel)
        return puts(torc_error_text(error)), 1;
    while (strcmp(peers[0], peers[1]) == 0) { /* until both are connected */
        call_as(channel, "a", peers[0]);
        call_as(channel, "b", peers[1]);
    }
    puts("apart");
    torc_channel_free(channel);
    return argc != 3;
}
"""


def test_lb_policy_settings():
    """The policy of docs/guide/lb-policy.md with the changes that its section on settings names."""
    if os.environ.get("TORC_SANITIZE"):
        return  # an application is not linked with the sanitizers' runtime
    policy, settings = blocks("docs/guide/lb-policy.md", "c")
    program = policy[:policy.index("torc_channel *channel")].replace(".credentials = credentials, ", "")
    program = re.sub(r"^torc_credentials \*credentials = .*\n", "", program, flags=re.M)
    for old, new in (("    torc_lb_child *at[MOST];\n};\n", f"    torc_lb_child *at[MOST];\n    char header[64];\n}};\n{settings}"),
                     ("    (void)config_json;\n", "    read_header(config_json, p->header);\n"),
                     ('"tenant"', "p->header"), (".pick = pick,", ".pick = pick, .check_config = check_config,")):
        check(program.count(old) == 1, f"{old} in {program}")
        program = program.replace(old, new)
    with tempfile.TemporaryDirectory() as folder, running("backend") as one, running("backend") as two:
        app, library = os.path.join(folder, "app"), os.path.join(BUILD, "src")
        subprocess.run(["cc", "-xc", "-Wall", "-Wextra", "-Werror", "-", "-o", app, "-I", os.path.join(SOURCE, "include"), "-L", library, "-ltorc", "-ljansson"],
                       input=f"{HEADERS}#include <jansson.h>\n{program}{SETTINGS_MAIN}", text=True, timeout=WAIT, check=True)
        for config, says in (('{"header": "user"}', "apart"), ("{}", "header: expected the name of a header"),
                             ('{"header": 5}', "header: expected the name of a header"), (f'{{"header": "{"h" * 64}"}}', "header: longer than 63 bytes")):
            done = subprocess.run([app, f"ipv4:{one.listening()},{two.listening()}" if says == "apart" else "ipv4:127.0.0.1:1",
                                   f'{{"loadBalancingConfig": [{{"by_tenant": {config}}}]}}'],
                                  env={**os.environ, "LD_LIBRARY_PATH": library}, capture_output=True, text=True, timeout=WAIT, check=False)
            check(says in done.stdout and done.returncode == (says != "apart"), f"{config}: {done}")


def test_json():
    for page in pages():
        for text in blocks(page, "json"):
            json.loads(text)
    (text,) = blocks("docs/operations/xds.md", "json")
    done = subprocess.run([TORC, "bootstrap", "--check", "-"], input=text, capture_output=True, text=True, timeout=WAIT, check=False)
    check(done.returncode == 0 and "good: 1 server" in done.stdout, str(done))


if not shutil.which("protoc"):
    print("protoc is not installed")
    sys.exit(77)
main(test_c, test_lb_policy_settings, test_json)
