"""torc ring: the rings that Envoy publishes, and what the command says of keys, walks and changes."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import case, check, main, run

BASIC = """833437586790550860 94|928266305478181108 92|1033482794131418490 90|3551244743356806947 95|3851675632748031481 93
|5583722120771150861 91|6311230543546372928 91|7700377290971790572 93|13144177310400110813 95|13444792449719432967 92
|15516499411664133160 94|16117243373044804889 90"""
BY_KEY = """1975508444536362413 95|2376063919839173711 95|2386806903309390596 93|6749904478991551885 94
|6803900775736438537 93|7225015537174310577 92|8787465352164086522 90|11282020843382717940 92|13723418369486627818 91
|13776502110861797421 90|14338313586354474791 91|15364271037087512980 94"""


def entries(text, prefix):
    return [f"{hash_} {prefix}{key}" for hash_, key in (e.split() for e in text.replace("\n", "").split("|"))]


def dump(*args):
    return run("ring", *args, "--dump").stdout.splitlines()


def endpoint_args(*keys):
    return [part for key in keys for part in ("-e", key)]


def test_published_rings():
    case("RC01")
    case("RC03")
    case("RC04")
    addresses = [f"127.0.0.1:{port}" for port in range(90, 96)]
    check(dump(*endpoint_args(*addresses), "--min", "12") == entries(BASIC, "127.0.0.1:"), "Envoy's basic ring")
    check(dump(*endpoint_args("90", "91", "92", "93", "94", "95"), "--min", "12") == entries(BY_KEY, ""), "ring by keys")
    check(dump(*endpoint_args("127.0.0.1:80", "127.0.0.1:81"), "--min", "3") ==
          entries("5454692015285649509 80|7859399908942313493 81|13838424394637650569 80|16064866803292627174 81",
                  "127.0.0.1:"), "uneven hosts")
    check(dump(*endpoint_args("127.0.0.1:90=1", "127.0.0.1:91=2", "127.0.0.1:92=3"), "--min", "6", "--max", "6") ==
          entries("928266305478181108 92|4443673547860492590 92|5583722120771150861 91|6311230543546372928 91"
                  "|13444792449719432967 92|16117243373044804889 90", "127.0.0.1:"), "weighted tiny ring")


def test_keys_and_walks():
    keys = endpoint_args("127.0.0.1:10001", "127.0.0.1:10002", "127.0.0.1:10003")
    out = run("ring", *keys, "--key", "127.0.0.1:10001_0", "--key", "127.0.0.1:10003_0").stdout.splitlines()
    check(out[0] == "127.0.0.1:10001_0 0x929561360b132b86 127.0.0.1:10001", out[0])
    check(out[1].endswith(" 127.0.0.1:10003"), out[1])
    out = run("ring", *keys, "--key", "-", stdin="127.0.0.1:10002_0\n").stdout.splitlines()
    check(len(out) == 1 and out[0].endswith(" 127.0.0.1:10002"), str(out))
    walk = run("ring", *keys, "--walk", "127.0.0.1:10002_0").stdout
    check(walk.index("127.0.0.1:10002") >= 0 and all(f"127.0.0.1:1000{i}" in walk for i in (1, 2, 3)), walk)


def test_absent_and_json():
    case("RC13")
    many = endpoint_args(*(f"10.0.{i // 250}.{i % 250}:80" for i in range(5000)))
    table = json.loads(run("ring", *many, "-o", "json").stdout)
    check("904" in json.dumps(table), "904 of 5000 endpoints have no entry")


def test_wrong_usage():
    said = run("ring", "xds:///fleet", status=2).stderr
    check("unexpected argument 'xds:///fleet'; endpoints are given with -e, those of a cluster with --resources FILE --cluster NAME" in said, said)
    for args in (["--min", "0"], ["-e", "a=x"], ["--nonsense"], [], ["-e", "a", "--min", "9", "--max", "3"]):
        done = run("ring", *args, status=2)
        check(len(done.stderr.strip().splitlines()) == 1, f"one line for {args}: {done.stderr}")


def test_cap_of_the_environment():
    def size(*args, env=None):
        return json.loads(run("ring", *endpoint_args("a", "b"), *args, "-o", "json", env=env).stdout)["entries"]
    check(size() == 1024 and size(env={"GRPC_RING_HASH_CAP": "100"}) == 100, "GRPC_RING_HASH_CAP, as for a channel")
    check(size("--cap", "60", env={"GRPC_RING_HASH_CAP": "100"}) == 60, "--cap wins")
    check(size(env={"GRPC_RING_HASH_CAP": "x"}) == 1024, "a value that is not a number is ignored")


def test_lines():
    """Lines with other line ends, and bytes that are not text."""
    keys = endpoint_args("127.0.0.1:10001", "127.0.0.1:10002", "127.0.0.1:10003")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys")
        with open(path, "wb") as out:
            out.write(b"u1\r\nu2\r\n")
        with open(path, encoding="utf-8", newline="") as lines:
            got = run("ring", *keys, "--key", "-", stdin=lines.read()).stdout
        check(got == run("ring", *keys, "--key", "u1", "--key", "u2").stdout, f"CR is no part of a key: {got!r}")
        with open(path, "wb") as out:
            out.write(b"a\nb\0c\n")
        said = run("ring", "--endpoints", path, status=2).stderr
        check(f"{path}: line 2 has a NUL" in said, said)
        with open(path, "wb") as out:
            out.write(b"# none\n")
        said = run("ring", "--endpoints", path, status=2).stderr
        check(f"--endpoints {path}: the file has no endpoints" in said, said)
    said = run("ring", "-e", "a", "--priority", "3", status=2).stderr
    check("--priority goes with --resources" in said, said)


main(test_published_rings, test_keys_and_walks, test_absent_and_json, test_wrong_usage, test_cap_of_the_environment, test_lines)
