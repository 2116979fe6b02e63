"""grpcurl and ghz, by reflection alone, and grpc_health_probe against a server of the public API (torc/server.h)."""
import json
import pathlib
import re
import subprocess
import tempfile

from programs import HERE, Program
from suite_rpc import certificates

SERVICES = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
            "grpc.testing.TestService", "xds.service.orca.v3.OpenRcaService"]
TEST = "grpc.testing.TestService"
RPC_FAILED = 3


class Probes:
    """The programs, with what makes them reach a server."""

    def __init__(self, folder, address, tls):
        self.grpcurl = [folder / "grpcurl"] + (["-cacert", tls, "-authority", "interop.test"] if tls else ["-plaintext"])
        self.health = [folder / "grpc-health-probe", "-addr", address, "-connect-timeout", "30s", "-rpc-timeout", "30s"]
        self.health += ["-tls", "-tls-ca-cert", tls, "-tls-server-name", "interop.test"] if tls else []
        self.ghz = [folder / "ghz", "-O", "json", *(["--cacert", tls, "--cname", "interop.test"] if tls else ["--insecure"])]
        self.address = address

    def load(self, method, data, *flags):
        """How many RPCs of a load ended with which status."""
        status, text, errors = run([*self.ghz, "--call", f"{TEST}/{method}", "-d", json.dumps(data), *flags, self.address])
        equal((status, errors), (0, ""))
        return json.loads(text)["statusCodeDistribution"]

    def ask(self, *words, flags=()):
        return run([*self.grpcurl, *flags, self.address, *words])


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def equal(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, wanted {want!r}")


def list_services(p):
    equal(p.ask("list"), (0, "".join(f"{name}\n" for name in SERVICES), ""))


def list_methods(p):
    names = ["EmptyCall", "FullDuplexCall", "StreamingInputCall", "StreamingOutputCall", "UnaryCall", "UnimplementedCall"]
    equal(p.ask("list", TEST), (0, "".join(f"{TEST}.{name}\n" for name in names), ""))


def describe_everything(p):
    status, text, errors = p.ask("describe")
    equal((status, errors), (0, ""))
    equal(re.findall(r"^(\S+) is a service:$", text, re.M), SERVICES)


def describe_a_method(p):
    status, text, _ = p.ask("describe", TEST + ".FullDuplexCall")
    equal(status, 0)
    equal("rpc FullDuplexCall ( stream .grpc.testing.StreamingOutputCallRequest ) returns ( stream "
          ".grpc.testing.StreamingOutputCallResponse );" in text, True)


def describe_a_nested_message(p):
    status, text, _ = p.ask("describe", "grpc.testing.LoadBalancerStatsResponse.RpcsByPeer")
    equal((status, "map<string, int32> rpcs_by_peer = 1;" in text), (0, True))


def describe_unknown(p):
    status, _, errors = p.ask("describe", "grpc.testing.Nothing")
    equal((status != 0, "Symbol not found" in errors), (True, True))


def call_unary(p):
    status, text, errors = p.ask(TEST + "/UnaryCall", flags=["-d", '{"response_size": 3}'])
    equal((status, errors), (0, ""))
    equal(json.loads(text), {"payload": {"body": "AAAA"}})


def call_with_status(p):
    status, _, errors = p.ask(TEST + "/UnaryCall", flags=["-d", '{"response_status": {"code": 9, "message": "not so"}}'])
    equal((status, "FailedPrecondition" in errors, "not so" in errors), (64 + 9, True, True))


def call_streams(p):
    requests = "".join(json.dumps({"response_parameters": [{"size": n}]}) for n in (1, 2))
    status, text, errors = p.ask(TEST + "/FullDuplexCall", flags=["-d", requests])
    equal((status, errors), (0, ""))
    equal(re.findall(r'"body": "(\S+)"', text), ["AA==", "AAA="])


def call_built_in(p):
    status, text, _ = p.ask("grpc.health.v1.Health/List")
    equal(status, 0)
    equal(json.loads(text), {"statuses": {"": {"status": "SERVING"}, TEST: {"status": "SERVING"}}})


def health_of_the_server(p):
    equal(run(p.health)[0], 0)


def health_of_a_service(p):
    equal(run([*p.health, "-service", TEST])[0], 0)


def health_of_nothing(p):
    equal(run([*p.health, "-service", "none"])[0], RPC_FAILED)


def load_of_unary_calls(p):
    equal(p.load("UnaryCall", {"response_size": 1000}, "-n", "5000", "-c", "100", "--connections", "10"), {"OK": 5000})


def load_of_streams(p):
    messages = [{"response_parameters": [{"size": n}]} for n in (1, 100000)]
    equal(p.load("FullDuplexCall", messages, "-n", "500", "-c", "50"), {"OK": 500})


def load_at_a_rate(p):
    equal(p.load("UnaryCall", {"payload": {"body": "AAAA"}}, "-n", "500", "-r", "1000", "--async"), {"OK": 500})


def load_that_fails(p):
    equal(p.load("UnaryCall", {"response_status": {"code": 9}}, "-n", "500", "-c", "20"), {"FailedPrecondition": 500})


CASES = {"grpcurl": [list_services, list_methods, describe_everything, describe_a_method, describe_a_nested_message,
                     describe_unknown, call_unary, call_with_status, call_streams, call_built_in],
         "grpc_health_probe": [health_of_the_server, health_of_a_service, health_of_nothing],
         "ghz": [load_of_unary_calls, load_of_streams, load_at_a_rate, load_that_fails]}
MODULES = {"ghz": "bojand/ghz", "grpcurl": "fullstorydev/grpcurl", "grpc_health_probe": "grpc-ecosystem/grpc-health-probe"}


def faults_of(paths, folder, cases, tls_files):
    flags = [f"{flag}={path}" for flag, path in zip(("--tls-cert", "--tls-key"), tls_files or ())]
    with Program([paths.own("interop_server"), *flags]) as server:
        probes = Probes(folder, server.word_after("listening"), tls_files and tls_files[0])
        for case in cases:
            try:
                case(probes)
            except (AssertionError, subprocess.TimeoutExpired, ValueError) as fault:
                yield f"{case.__name__}, {'TLS' if tls_files else 'plain'}: {fault}"
        server.finish()


def run_suite(paths, options):
    if options.peers and "probes" not in options.peers:
        return
    folder = paths.peer("probes")
    pinned = (HERE / "probes" / "go.mod").read_text(encoding="ascii")
    with tempfile.TemporaryDirectory() as scratch:
        tls_files = certificates(pathlib.Path(scratch))
        for name, cases in CASES.items():
            faults = [fault for tls in (None, tls_files) for fault in faults_of(paths, folder, cases, tls)]
            yield {"peer": name, "version": re.search(rf"{MODULES[name]} v(\S+)", pinned)[1], "cases": 2 * len(cases),
                   "passed": 2 * len(cases) - len(faults), "failed": len(faults), "why": faults}
