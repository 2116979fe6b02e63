"""Health checks of channels (A17) against grpc-go's health service: `torc call` makes RPCs all the time, while the servers' statuses
change."""
import contextlib
import json
import time

import build_peers
from plane_world import check
from programs import WAIT, Failure, Program

SERVICE, BATCH = "orders", 40
ROUND_ROBIN = {"loadBalancingConfig": [{"round_robin": {}}]}
RING_HASH = {"loadBalancingConfig": [{"ring_hash_experimental": {"requestHashHeader": "x-key"}}]}
OK, UNAVAILABLE = 0, 14


class Calls(Program):
    """RPCs at 200 a second, each with another key."""

    def __init__(self, paths, addresses, config, service):
        super().__init__([paths.command(), "call", "ipv4:" + ",".join(addresses), "grpc.testing.TestService/EmptyCall", "--raw", "-n", "1000000",
                          "--rps", "200", "-H", "x-key: {i}", "-o", "json", "--service-config",
                          json.dumps({**config, "healthCheckConfig": {"serviceName": service}})])

    def until(self, wanted, what):
        """Batches of (code, server) until wanted(codes, servers). Returns the codes of all that ended meanwhile."""
        end, seen = time.monotonic() + WAIT, set()
        while time.monotonic() < end:
            batch = [call for call in (json.loads(self.line()).get("call") for _ in range(BATCH)) if call]
            codes = {call["code"] for call in batch}
            seen |= codes
            if wanted(codes, {call["peer"] for call in batch if call["code"] == OK}):
                return seen
        raise Failure(f"{what}: the last RPCs ended with {codes}, of {batch[-1]}")

    def settle(self, servers, what):
        """All go to these servers, each gets some, and none fails, meanwhile either."""
        codes = self.until(lambda codes, peers: codes == {OK} and peers == set(servers), what)
        check(codes == {OK}, f"{what}: RPCs ended with {codes} meanwhile")

    def settle_failing(self, what):
        self.until(lambda codes, _: codes == {UNAVAILABLE}, what)


@contextlib.contextmanager
def world_of(paths, config, servers, statuses=(), service=SERVICE):
    """(go, addresses, calls): `servers` are those that the channel knows, `statuses` what they say at first."""
    with Program(paths.go("health")[0]) as go:
        addresses = go.word_after("listening").split()
        for server, status in zip(servers, statuses):
            go.ask({"server": server, "service": SERVICE, "status": status})
        with Calls(paths, [addresses[i] for i in servers], config, service) as calls:
            yield go, addresses, calls


def leaves_and_rejoins(paths, config):
    """The same connection and the same Watch until the health service of one server shuts down."""
    with world_of(paths, config, (0, 1), ("SERVING", "SERVING")) as (go, addresses, calls):
        both = addresses[:2]
        calls.settle(both, "both serve")
        for _ in range(3):
            for gone in (0, 1):
                go.ask({"server": gone, "service": SERVICE, "status": "NOT_SERVING"})
                calls.settle([both[1 - gone]], f"server {gone} is NOT_SERVING")
                go.ask({"server": gone, "service": SERVICE, "status": "SERVING"})
                calls.settle(both, f"server {gone} is SERVING again")
        seen = go.ask({"server": 1, "shutdown": True})
        calls.settle(both[:1], "the health service of server 1 shuts down")
        go.ask({"server": 1, "resume": True})
        calls.settle(both, "it resumes")
        check(seen == {"connections": [1, 1, 0], "watches": [1, 1, 0]}, f"the servers had {seen}")


def all_unhealthy(paths, config):
    with world_of(paths, config, (0, 1), ("NOT_SERVING", "NOT_SERVING")) as (go, addresses, calls):
        calls.settle_failing("both are NOT_SERVING")
        go.ask({"server": 1, "service": SERVICE, "status": "SERVING"})
        calls.until(lambda codes, peers: codes == {OK} and peers == {addresses[1]}, "one is SERVING")


def unknown_service(paths, config):
    """SERVICE_UNKNOWN, until the service is set."""
    with world_of(paths, config, (0, 1)) as (go, addresses, calls):
        calls.settle_failing("no server knows the service")
        go.ask({"server": 0, "service": SERVICE, "status": "SERVING"})
        calls.until(lambda codes, peers: codes == {OK} and peers == {addresses[0]}, "one knows it")


def whole_server(paths, config):
    """The name "" is the server's, which grpc-go has SERVING from the start."""
    with world_of(paths, config, (0, 1), service="") as (go, addresses, calls):
        calls.settle(addresses[:2], "both serve")
        go.ask({"server": 0, "service": "", "status": "NOT_SERVING"})
        calls.settle(addresses[1:2], "the first does not")


def no_health_service(paths, config):
    """UNIMPLEMENTED: used, and not asked again."""
    with world_of(paths, config, (1, 2), ("SERVING",)) as (go, addresses, calls):
        calls.settle(addresses[1:], "one without the health service")
        calls.settle(addresses[1:], "one without the health service, later")
        seen = go.ask({"server": 1})
        check(seen == {"connections": [0, 1, 1], "watches": [0, 1, 1]}, f"the servers had {seen}")


def pick_first_does_not_ask(paths, config):
    with world_of(paths, config, (0,), ("NOT_SERVING",)) as (go, addresses, calls):
        calls.settle(addresses[:1], "pick_first")
        seen = go.ask({"server": 0})
        check(seen["watches"] == [0, 0, 0], f"the servers had {seen}")


# grpc-go#8590: however the service config names round_robin.
CASES = [(case, policy) for case in (leaves_and_rejoins, all_unhealthy, unknown_service, whole_server, no_health_service)
         for policy in (ROUND_ROBIN, RING_HASH)] + [(leaves_and_rejoins, {"loadBalancingPolicy": "round_robin"}), (pick_first_does_not_ask, {})]


def run(paths, options):
    if options.peers and "go" not in options.peers:
        return
    try:
        version = paths.go_module("google.golang.org/grpc")
    except build_peers.Missing as missing:
        yield {"peer": "grpc-go", "version": "", "skipped": len(CASES), "why": [str(missing)]}
        return
    faults = []
    for case, config in CASES:
        try:
            case(paths, config)
        except Failure as failure:
            faults.append(f"{case.__name__} with {config}: {failure}")
    yield {"peer": "grpc-go", "version": version, "cases": len(CASES), "passed": len(CASES) - len(faults), "failed": len(faults), "why": faults}
