"""What the command says of values and files that it cannot use: each message names the option, the file and the reason. Help,
version, long options, and names that are nearly those of commands, options and policies."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import check, cluster, endpoints, main, run, running, write_resources


def refused(*args, says, status=2):
    said = run(*args, status=status).stderr
    check(len(said.splitlines()) == 1 and says in said, f"torc {args}: {said!r} and not {says!r}")


COMMANDS = ("call", "backend", "serve-xds", "xds", "bootstrap", "ring", "bench", "demo")


def test_help_and_version():
    """`torc help` prints what `torc --help` prints, `torc version` what `torc --version` prints."""
    version = run("version").stdout
    check(version == run("--version").stdout and version.startswith("torc 0."), version)
    top = run("help").stdout
    check(top == run("--help").stdout == run("-h").stdout, top)
    for args in (("help", "-h"), ("help", "help"), ("help", "version")):
        check(run(*args).stdout == top, args)
    for command in COMMANDS:
        check(f"  {command} " in top, f"{command} is not in {top}")
        text = run("help", command).stdout
        check(text == run(command, "--help").stdout and text.startswith(f"usage: torc {command} "), text)
    refused("help", "no-such", says="unknown command 'no-such'")
    refused("help", "call", "ring", says="unexpected argument 'ring'")
    for name in ("version", "--version", "--help", "-h"):
        check(run(name, "--help").stdout == top, name)
        refused(name, "call", says="unexpected argument 'call'")
    refused("no-such", says="unknown command 'no-such'")


def test_empty_values():
    for option in ("--data-file", "--ca", "--cert", "--key"):
        refused("call", option, "", "--creds", "tls", "x", "a/b", says=f"{option}: the path is empty")
    for option in ("--endpoints", "--resources", "--svg"):
        refused("ring", "-e", "a", option, "", says=f"{option}: the path is empty")
    refused("serve-xds", "--resources", "", says="--resources: the path is empty")
    for command in ("call", "bench"):
        refused(command, "--service-config", "", "x", "a/b", says="--service-config: the JSON is empty")
        refused(command, "--service-config", "@", "x", "a/b", says="--service-config: the path is empty")
        with tempfile.NamedTemporaryFile() as empty:
            refused(command, "--service-config", "@" + empty.name, "x", "a/b", says=f"{empty.name} is empty")


def test_flags_with_values():
    refused("call", "--quiet=3", "x", "a/b", says="option '--quiet' takes no value")
    refused("call", "--verbose=3", "x", "a/b", says="option '--verbose' takes no value")
    refused("call", "--no-such=3", "x", "a/b", says="unknown option '--no-such=3'")
    refused("call", "--rps=3", "-xv", "x", "a/b", says="unknown option '-x'")


def test_nearest_names():
    """The error for an unknown name of a command, an option or a policy proposes the known name that is near, if
    any."""
    for typed, meant in (("bnech", "bench"), ("serve_xds", "serve-xds"), ("simulat", "simulate"), ("desc", "describe"), ("hlep", "help"), ("BACKEND", "backend")):
        refused(typed, says=f"torc: unknown command '{typed}': did you mean {meant}? (try 'torc --help')\n")
        refused("help", typed, says=f"did you mean {meant}?")
    for typed in ("foo", "x", "", "-", "no-such", "b" * 1000):
        refused(typed, says=f"unknown command '{typed}' (try 'torc --help')\n")
    call = ("call", "x", "a/b")
    for typed, meant in (("--deadlin", "--deadline"), ("--wait_for_ready", "--wait-for-ready"), ("--Count=3", "--count"), ("--hel", "--help"),
                         ("--deda", None), ("--no-such=3", None), ("--" + "b" * 70, None)):
        refused(*call, typed, says=f"torc call: unknown option '{typed}'" + (f": did you mean {meant}? (try" if meant else " (try"))
    refused(*call, "--tiemout", "3", says="unknown option '--tiemout': did you mean --timeout? use --deadline (try 'torc call --help')\n")
    refused("xds", "--tiemout", says="unknown option '--tiemout': did you mean --timeout? (try")
    simulate = ("simulate", "--backends", "2", "--policy")
    for typed, meant in (("ringhash", "ring_hash"), ("round-robin={}", "round_robin"), ("Maglev", "maglev"), ("least_requests", "least_request")):
        refused(*simulate, typed, says=f"there is no LB policy '{typed.partition('=')[0]}': did you mean {meant}? (try")
    refused(*simulate, "hash", says="there is no LB policy 'hash' (try")


def test_options_with_two_names():
    """An error names the option that was typed."""
    for option in ("--ca", "--cacert"):
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            file.flush()
            for command in ("call", "bench"):
                refused(command, option, "/nofile", "x", "a/b", says=f"torc {command}: {option}: cannot read /nofile", status=1)
                refused(command, option, file.name, "x", "a/b", says=f"torc {command}: {option} {file.name}: ", status=1)
                refused(command, option, file.name, "--creds", "insecure", "x", "a/b", says=f"{option}, --cert and --key go with")
                refused(command, option, file.name, "--skip-verify", "x", "a/b", says=f"and without {option} (try")
    for option in ("--duration", "--max-duration"):
        refused("bench", option, "x", "x", "a/b", says=f"{option}: 'x' is not a duration")


def test_long_options():
    """In every command a long option may have one dash, and is never abbreviated."""
    for command in ("call", "list", "describe", "backend", "serve-xds", "xds", "bootstrap", "ring", "simulate", "bench", "demo"):
        check(run(command, "-help").stdout == run(command, "--help").stdout, command)
        refused(command, "--hel", says="unknown option '--hel'")
    refused("backend", "--nam", "x", says="unknown option '--nam'")
    refused("xds", "-timeout", "0x", says="--timeout: '0x' is not a duration")
    refused("serve-xds", "-lrs-interval=0s", says="--lrs-interval: '0s' is not above 0")
    refused("demo", "-output", "xml", says="-o: 'xml' is neither text nor json")
    check(run("ring", "-endpoint", "-a", "-key=k").stdout.split()[2] == "-a", "a value is never an option")


def test_values_that_cannot_be():
    refused("call", "--deadline", "9999999h", "x", "a/b", says="--deadline: '9999999h' is too long")
    refused("call", "--deadline", "99999999999", "x", "a/b", says="--deadline: '99999999999' is too long: it must be less than 2500000h")
    refused("call", "--deadline", "-5", "x", "a/b", says="--deadline: '-5' is not a duration")
    refused("call", "--deadline", "9x", "x", "a/b", says="--deadline: '9x' is not a duration")
    refused("call", "--max-receive-bytes", "9" * 20, "x", "a/b", says=f"--max-receive-bytes: '{'9' * 20}' is too large")
    refused("call", "--max-receive-bytes", "9" * 20 + "M", "x", "a/b", says="M' is too large")
    refused("call", "--max-receive-bytes", "1.5", "x", "a/b", says="'1.5' is not a size")
    refused("bench", "--max-receive-bytes", "0", "x", "a/b", says="--max-receive-bytes: '0' is not above 0")
    refused("backend", "--max-connection-age", "0s", says="--max-connection-age: '0s' is not above 0")
    refused("backend", "--name", "a\nb", says="--name: 'a\\u000ab' is not printable ASCII")
    for authority in ("a b", "foo:bar", "foo:99999"):
        refused("call", "--authority", authority, "127.0.0.1:1", "a/b", says=f'authority: "{authority}" must be host[:port]')


def test_one_line_without_control_characters():
    refused("call", "-H", "foo: x\ny\x1b[2J", "x", "a/b", says="-H: 'foo: x\\u000ay\\u001b[2J' is not allowed")
    refused("ring", "-e", "a", "--no\nsuch", says="unknown option '--no\\u000asuch'")


def test_resource_files_are_named():
    with tempfile.TemporaryDirectory() as folder:
        first, second = os.path.join(folder, "a.json"), os.path.join(folder, "b.json")
        write_resources(first, "1", cluster("orders", no_field_of_ours=1))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", folder, log=True) as server:
            server.listening()
            at_server = server.wait_log(lambda line: f"{first}: left out" in line and "no_field_of_ours" in line)
        # The ring of such a file is shown, with the same words.
        write_resources(first, "1", cluster("orders", no_field_of_ours=1, lb_policy="RING_HASH"),
                        endpoints("orders", "127.0.0.1:1", "127.0.0.1:2"))
        shown = run("ring", "--resources", first, "--cluster", "orders", "--key", "u1", "-o", "json")
        check(json.loads(shown.stdout)["address"] in ("127.0.0.1:1", "127.0.0.1:2"), shown.stdout)
        check(shown.stderr.strip() == at_server.replace("torc serve-xds:", "torc ring:"), f"{shown.stderr} {at_server}")
        write_resources(second, "1", cluster("orders"))
        said = run("serve-xds", "--listen", "127.0.0.1:0", "--resources", folder, status=1).stderr
        check(f'{second}: field resources[0]: "orders" is given twice: it is in {first} too' in said, said)


main(test_help_and_version, test_empty_values, test_flags_with_values, test_nearest_names, test_options_with_two_names, test_long_options, test_values_that_cannot_be, test_one_line_without_control_characters,
     test_resource_files_are_named)
