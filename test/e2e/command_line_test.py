"""What the command says of values and files that it cannot use: each message names the option, the file and the reason."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import check, cluster, main, run, running, write_resources


def refused(*args, says, status=2):
    said = run(*args, status=status).stderr
    check(len(said.splitlines()) == 1 and says in said, f"torc {args}: {said!r} and not {says!r}")


def test_empty_values():
    for option in ("--data-file", "--ca", "--cert", "--key"):
        refused("call", option, "", "--creds", "tls", "x", "a/b", says=f"{option}: the path is empty")
    for option in ("--endpoints", "--resources", "--svg"):
        refused("ring", "-e", "a", option, "", says=f"{option}: the path is empty")
    refused("serve-xds", "--resources", "", says="--resources: the path is empty")
    for command in ("call", "bench"):
        refused(command, "--service-config", "", "x", "a/b", says="--service-config: it is empty")
        refused(command, "--service-config", "@", "x", "a/b", says="--service-config: the path is empty")
        with tempfile.NamedTemporaryFile() as empty:
            refused(command, "--service-config", "@" + empty.name, "x", "a/b", says=f"{empty.name} is empty")


def test_flags_with_values():
    refused("call", "--quiet=3", "x", "a/b", says="option '--quiet' takes no value")
    refused("call", "--verbose=3", "x", "a/b", says="option '--verbose' takes no value")
    refused("call", "--no-such=3", "x", "a/b", says="unknown option '--no-such=3'")
    refused("call", "--rps=3", "-xv", "x", "a/b", says="unknown option '-x'")


def test_resource_files_are_named():
    with tempfile.TemporaryDirectory() as folder:
        first, second = os.path.join(folder, "a.json"), os.path.join(folder, "b.json")
        write_resources(first, "1", cluster("orders", no_field_of_ours=1))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", folder, log=True) as server:
            server.listening()
            server.wait_log(lambda line: f"{first}: left out" in line and "no_field_of_ours" in line)
        write_resources(second, "1", cluster("orders"))
        said = run("serve-xds", "--listen", "127.0.0.1:0", "--resources", folder, status=1).stderr
        check(f'{second}: field resources[0]: "orders" is given twice: it is in {first} too' in said, said)


main(test_empty_values, test_flags_with_values, test_resource_files_are_named)
