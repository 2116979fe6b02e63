"""gRPC's xDS interop tests (PSM interop) as its xds-test-descriptions.md has them: Torc's test client (psm_client) against
go-control-plane and grpc-go backends, asked by grpc-go. Where a description says what Traffic Director makes of its own
settings, the xDS resources that it would send stand here."""
import time

import build_peers
import psm_policies
from plane_world import check
from programs import WAIT, Failure
from psm_world import NAME, QPS, check_even, cluster, listener, route_config, to, world_of

FAIL = "--fail_on_failed_rpc=true"
BOTH = "--rpc=EmptyCall,UnaryCall"
UNARY = "/grpc.testing.TestService/UnaryCall"
EMPTY = "/grpc.testing.TestService/EmptyCall"
FOUR = ["b0", "b1", "b2", "b3"]
OK, DEADLINE_EXCEEDED, UNAVAILABLE = 0, 4, 14


def ping_pong(paths):
    with world_of(paths, FAIL) as world:
        world.serve_simply((0, 1, FOUR))
        world.settle(FOUR, "each of four backends")


def round_robin(paths):
    with world_of(paths, FAIL) as world:
        world.serve_simply((0, 1, FOUR))
        world.settle(FOUR, "each of four backends")
        check_even(world.distribution(100)[0], 25)


def backends_restart(paths):
    with world_of(paths) as world:
        world.serve_simply((0, 1, FOUR))
        world.settle(FOUR, "each of four backends")
        before = world.distribution(100)[0]
        world.stop(*FOUR)
        world.until(lambda peers, failures, _: not peers and failures == 100, "no RPC succeeds")
        world.start(*FOUR)
        world.settle(FOUR, "each of four backends again")
        after = world.distribution(100)[0]
        check(before == after, f"{before} before the restart, {after} after it")


def secondary_locality_gets_requests_on_primary_failure(paths):
    with world_of(paths) as world:
        world.serve_simply((0, 1, FOUR[:2]), (1, 1, FOUR[2:]))
        world.settle(FOUR[:2], "the primary locality alone")
        world.stop(*FOUR[:2])
        world.settle(FOUR[2:], "the secondary locality")
        world.start(*FOUR[:2])
        world.settle(FOUR[:2], "the primary locality again")


def secondary_locality_gets_no_requests_on_partial_primary_failure(paths):
    with world_of(paths) as world:
        world.serve_simply((0, 1, FOUR[:2]), (1, 1, FOUR[2:]))
        world.settle(FOUR[:2], "the primary locality alone")
        world.stop("b0")
        world.settle(["b1"], "what remains of the primary locality")
        peers, _, _ = world.distribution(2 * QPS)
        check(set(peers) == {"b1"}, f"with one of the primary locality there, RPCs went {peers}")


def remove_instance_group(paths):
    with world_of(paths, FAIL) as world:
        world.serve_simply((0, 1, FOUR[:2]), (0, 1, FOUR[2:]))
        world.settle(FOUR, "both groups")
        world.serve_simply((0, 1, FOUR[2:]))
        world.settle(FOUR[2:], "the group that remains")


def change_backend_service(paths):
    with world_of(paths, FAIL) as world:
        world.serve_simply((0, 1, FOUR[:2]))
        world.settle(FOUR[:2], "the first service")
        world.serve(listener(), route_config(to("two")), cluster("one"), world.assignment("one", (0, 1, FOUR[:2])), cluster("two"),
                    world.assignment("two", (0, 1, FOUR[2:])))
        world.settle(FOUR[2:], "the second service")


def two_services(world, *routes):
    """Services default (b0) and other (b1)."""
    world.serve(listener(), route_config(*routes, to("default")), cluster("default"), world.assignment("default", (0, 1, ["b0"])),
                cluster("other"), world.assignment("other", (0, 1, ["b1"])))


def traffic_splitting(paths):
    with world_of(paths, FAIL) as world:
        two_services(world)
        world.settle(["b0"], "the first service")
        check(world.distribution(1000)[0] == {"b0": 1000}, "not all RPCs to the one service")
        weights = [{"name": "default", "weight": 20}, {"name": "other", "weight": 80}]
        two_services(world, {"match": {"prefix": ""}, "route": {"weighted_clusters": {"clusters": weights}}})
        world.settle(["b0", "b1"], "both services")
        peers = world.distribution(1000)[0]
        # Seven standard deviations of a share of 20 % in 1,000; unweighted it were 500.
        check(abs(peers["b0"] - 200) < 90 and sum(peers.values()) == 1000, f"of 1,000 RPCs {peers}, wanted 200 and 800")


def matching(paths, flags, cases):
    """Each case: the routes before the default one, and where UnaryCall and EmptyCall go."""
    with world_of(paths, FAIL, BOTH, *flags) as world:
        two_services(world)
        world.settle_methods({"UnaryCall": "b0", "EmptyCall": "b0"}, "the default route")
        for routes, unary, empty in cases:
            two_services(world, *routes)
            world.settle_methods({"UnaryCall": unary, "EmptyCall": empty}, str(routes))
            # The next case starts from where all RPCs go to the default, so that no stale route can pass for it.
            two_services(world)
            world.settle_methods({"UnaryCall": "b0", "EmptyCall": "b0"}, "the default route again")


def path_matching(paths):
    matching(paths, [], [
        ([to("other", path=EMPTY)], "b0", "b1"),
        ([to("other", prefix="/grpc.testing.TestService/Unary")], "b1", "b0"),
        ([to("default", prefix="/grpc.testing.TestService/Unary"), to("other", path=EMPTY)], "b0", "b1"),
        ([to("other", safe_regex={"google_re2": {}, "regex": r"^\/.*\/UnaryCall$"})], "b1", "b0"),
        ([to("other", path="/gRpC.tEsTinG.tEstseRvice/empTycaLl", case_sensitive=False)], "b0", "b1")])


def header_matching(paths):
    def header(name, **matcher):
        return [to("other", prefix="", headers=[{"name": name, **matcher}])]
    matching(paths, ["--metadata=EmptyCall:xds_md:empty_ytpme,UnaryCall:xds_md:unary_yranu,UnaryCall:xds_md_numeric:159"], [
        (header("xds_md", exact_match="empty_ytpme"), "b0", "b1"),
        (header("xds_md", prefix_match="un"), "b1", "b0"),
        (header("xds_md", suffix_match="me"), "b0", "b1"),
        (header("xds_md_numeric", present_match=True), "b1", "b0"),
        (header("xds_md", exact_match="unary_yranu", invert_match=True), "b0", "b1"),
        (header("xds_md_numeric", range_match={"start": 100, "end": 200}), "b1", "b0"),
        (header("xds_md", safe_regex_match={"google_re2": {}, "regex": "^em.*me$"}), "b0", "b1")])


def gentle_failover(paths):
    """Traffic Director moves weight to the secondary locality when most of the primary is gone."""
    primary, secondary = FOUR[:3], ["b3", "b4"]
    with world_of(paths) as world:
        world.serve_simply((0, 100, primary), (1, 100, secondary))
        world.settle(primary, "the primary locality alone")
        world.stop("b0", "b1")
        world.serve_simply((0, 33, primary), (0, 67, secondary))
        world.settle(["b2", *secondary], "the rest of the primary locality and the secondary one")
        world.start("b0", "b1")
        world.serve_simply((0, 100, primary), (1, 100, secondary))
        world.settle(primary, "the primary locality again")


def reported_rps(world):
    """Requests a second in the first load report, after the next one, that has more than half of what is sent: the next
    one may reach back to where the client stood idle, and a busy machine sends less for a while."""
    rates = []
    end = time.monotonic() + WAIT

    def enough(told):
        for stats in told.get("load", {}).get("clusterStats", []):
            issued = sum(int(l.get("totalIssuedRequests", 0)) for l in stats.get("upstreamLocalityStats", []))
            rates.append(issued / float(stats["loadReportInterval"].removesuffix("s")))
        check(time.monotonic() < end, f"{rates} requests a second are reported, {QPS} are sent")
        return len(rates) >= 2 and rates[-1] > QPS / 2
    world.plane.await_told(enough)
    return rates[-1]


def load_based_failover(paths):
    """The control plane hears by LRS how much the primary locality gets, and lets the secondary help above its rate."""
    fields = {"lrs_server": {"self": {}}}
    with world_of(paths) as world:
        for limit, hosts in ((QPS * 4, FOUR[:2]), (QPS / 5, FOUR), (QPS * 4, FOUR[:2])):
            if reported_rps_after_start(world, fields) > limit:
                world.serve_simply((0, 50, FOUR[:2]), (0, 50, FOUR[2:]), cluster_fields=fields)
            else:
                world.serve_simply((0, 100, FOUR[:2]), (1, 100, FOUR[2:]), cluster_fields=fields)
            world.settle(hosts, f"at a rate of {limit} a second in the primary locality")


def reported_rps_after_start(world, fields):
    if world.version == 0:
        world.serve_simply((0, 100, FOUR[:2]), (1, 100, FOUR[2:]), cluster_fields=fields)
        world.settle(FOUR[:2], "the primary locality")
    return reported_rps(world)


def steady_in_flight(world, method, n):
    """n RPCs are held open, and more only for moments: an RPC over the limit counts from its start to its failure, and
    a client that stood still starts many of them at once."""
    world.until_counted(lambda: world.in_flight(method) == n, f"{n} of {method} in flight")
    seen = sorted(world.in_flight(method) for _ in range(40))
    check(seen[0] == n and seen[len(seen) // 2] <= n * 1.05, f"{method}: {seen} in flight, {n} are allowed")


def circuit_breaking(paths):
    def limit(n):
        return {"circuit_breakers": {"thresholds": [{"max_requests": n}]}}

    def serve(world, unary):
        world.serve(listener(), route_config(to("unary", path=UNARY), to("empty", path=EMPTY)), cluster("unary", **limit(unary)),
                    world.assignment("unary", (0, 1, FOUR[:2])), cluster("empty", **limit(1000)),
                    world.assignment("empty", (0, 1, FOUR[2:])))
    keep_open = ",".join(f"{rpc}:rpc-behavior:keep-open" for rpc in ("EmptyCall", "UnaryCall"))
    with world_of(paths, BOTH, f"--metadata={keep_open}", "--rpc_timeout_sec=600", "--qps=2000") as world:
        serve(world, 500)
        steady_in_flight(world, "UNARY_CALL", 500)
        steady_in_flight(world, "EMPTY_CALL", 1000)
        serve(world, 800)
        steady_in_flight(world, "UNARY_CALL", 800)


def almost_all(delta, code):
    return delta.get(code, 0) == sum(delta.values())


def timeout(paths):
    """max_stream_duration of 1 s where the description has 3 s, and RPCs that take 2 s where it has 4 s."""
    with world_of(paths, "--qps=50") as world:
        bounded = to("one", path=UNARY)
        bounded["route"]["max_stream_duration"] = {"max_stream_duration": "1s"}
        world.serve(listener(), route_config(bounded, to("one")), cluster("one"), world.assignment("one", (0, 1, FOUR[:2])))
        world.settle(FOUR[:2], "the service")
        # timeout_not_exceeded
        # A machine that stands still for a second delays them.
        world.until_counted(lambda: almost_all(world.codes_over("UNARY_CALL", 100), OK), "RPCs that nothing delays all succeed")
        sleep = [{"type": kind, "key": "rpc-behavior", "value": "sleep-2"} for kind in ("UNARY_CALL", "EMPTY_CALL")]
        # app_timeout_exceeded, on the route without a bound
        world.ask("Configure", types=["EMPTY_CALL"], metadata=sleep, timeoutSec=1)
        check(almost_all(world.codes_over("EMPTY_CALL", 50), DEADLINE_EXCEEDED), "the application's deadline did not bite")
        # timeout_exceeded, timeout_different_route
        world.ask("Configure", types=["UNARY_CALL", "EMPTY_CALL"], metadata=sleep)
        ended_before_the_change(world, "UNARY_CALL", "EMPTY_CALL")
        unary, empty = world.codes_over("UNARY_CALL", 50), world.codes_over("EMPTY_CALL", 50)
        check(almost_all(unary, DEADLINE_EXCEEDED), f"UnaryCall on the bounded route: {unary}")
        check(almost_all(empty, OK), f"EmptyCall on the other route: {empty}")


def ended_before_the_change(world, *methods):
    """Waits until every RPC started so far has ended: these count for the previous configuration."""
    started = {method: world.counts(method)[0] for method in methods}
    for method, n in started.items():
        world.until_counted(lambda m=method, n=n: sum(world.counts(m)[1].values()) >= n, "earlier RPCs end")


def api_listener(paths):
    """A second forwarding rule for the same name replaces the first: another listener, another route configuration."""
    with world_of(paths, FAIL) as world:
        rest = [cluster("one"), world.assignment("one", (0, 1, FOUR[:2])), cluster("two"),
                world.assignment("two", (0, 1, FOUR[2:]))]
        world.serve(listener(route="first"), route_config(to("one"), name="first"), *rest)
        world.settle(FOUR[:2], "the first rule")
        world.serve(listener(route="first"), route_config(to("one"), name="first"), route_config(to("two"), name="second"), *rest)
        world.serve(listener(route="second"), route_config(to("one"), name="first"), route_config(to("two"), name="second"), *rest)
        world.settle(FOUR[2:], "the second rule")
        world.serve(listener(route="second"), route_config(to("two"), name="second"), *rest)
        world.settle(FOUR[2:], "the second rule alone")


def forwarding_rule_port_match(paths):
    """The port in a target is part of the listener's name."""
    with world_of(paths, server=f"xds:///{NAME}:8080") as world:
        one = [route_config(to("one")), cluster("one"), world.assignment("one", (0, 1, FOUR[:2]))]
        world.serve(listener(name=f"{NAME}:8080"), *one)
        world.settle(FOUR[:2], "the rule with the port asked for")
    with world_of(paths, "--rpc_timeout_sec=1", server=f"xds:///{NAME}:8080") as world:
        world.serve(listener(name=f"{NAME}:80"), *one)
        world.until(lambda peers, failures, _: not peers and failures, "a rule for another port serves nothing", rpcs=10)


def fault_injection(paths):
    """A33: aborts with HTTP status 401, and delays of 2 s against a deadline of 1 s: of no RPC, of all RPCs, of half of
    the RPCs, and on a route whose headers no RPC has."""
    def fault(**kinds):
        return {"name": "fault", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault", **kinds}}

    def delay(percent):
        return {"delay": {"fixed_delay": "2s", "percentage": {"numerator": percent, "denominator": "HUNDRED"}}}

    def abort(percent):
        return {"abort": {"http_status": 401, "percentage": {"numerator": percent, "denominator": "HUNDRED"}}}

    with world_of(paths, "--rpc_timeout_sec=1") as world:
        chain = listener()
        chain["api_listener"]["api_listener"]["http_filters"].insert(0, fault())
        rest = [cluster("one"), world.assignment("one", (0, 1, FOUR[:2]))]

        def serve(faults, **match):
            """On the route, as Traffic Director's URL map has it."""
            faulty = {**to("one", **match), "typed_per_filter_config": {"fault": fault(**faults)["typed_config"]}}
            world.serve(chain, route_config(faulty, to("one")), *rest)

        def until_code(code, what):
            world.until_counted(lambda: set(world.codes_over("UNARY_CALL", 50)) == {code}, what)

        for what, faults, code in [("zero percent", {**abort(0), **delay(0)}, OK), ("always abort", abort(100), 16),
                                   ("none", {}, OK), ("always delay", delay(100), DEADLINE_EXCEEDED)]:
            serve(faults)
            until_code(code, what)
        serve(abort(100), prefix="", headers=[{"name": "fi_testcase", "string_match": {"exact": "never sent"}}])
        until_code(OK, "a route that matches no RPC")
        for faults, code in (abort(50), 16), (delay(50), DEADLINE_EXCEEDED):
            serve(faults)
            world.until_counted(lambda c=code: c in world.codes_over("UNARY_CALL", 20), "half of the RPCs fail")
            ended_before_the_change(world, "UNARY_CALL")
            codes = world.codes_over("UNARY_CALL", 600)
            share = codes.get(code, 0) / sum(codes.values())
            check(abs(share - 0.5) < 0.1 and set(codes) == {OK, code}, f"{faults}: the RPCs ended with {codes}")
            serve({})
            until_code(OK, "none")


def retry(paths):
    """A44: four attempts at most, on UNAVAILABLE; the backend takes the fourth."""
    with world_of(paths, "--metadata=UnaryCall:rpc-behavior:succeed-on-retry-attempt-4,UnaryCall:rpc-behavior:error-code-14") as world:
        for retries, code in ((2, UNAVAILABLE), (3, OK)):
            route = to("one")
            route["route"]["retry_policy"] = {"retry_on": "unavailable", "num_retries": retries,
                                              "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.005s"}}
            world.serve(listener(), route_config(route), cluster("one"), world.assignment("one", (0, 1, FOUR[:2])))
            world.until_counted(lambda c=code: set(world.codes_over("UNARY_CALL", 50)) == {c}, f"with {retries} retries")


def affinity(paths):
    """Ring hash on a header: one backend for one value, and another backend when the first is gone."""
    route = to("one")
    route["route"]["hash_policy"] = [{"header": {"header_name": "xds_md"}}]
    with world_of(paths, "--metadata=UnaryCall:xds_md:ada") as world:
        world.serve(listener(), route_config(route), cluster("one", lb_policy="RING_HASH"), world.assignment("one", (0, 1, FOUR)))
        peers, _, _ = world.until(lambda peers, failures, _: len(peers) == 1 and not failures, "one backend")
        world.stop(*peers)
        others, _, _ = world.until(lambda now, failures, _: len(now) == 1 and set(now) != set(peers) and not failures,
                                   "one other backend")
        world.start(*peers)
        world.settle(peers, "the first backend again")
        check(set(others) != set(peers), "the same backend")


def outlier_detection(paths):
    """A50: the host that fails is ejected, and nothing reaches it, until it may return and fails no longer."""
    ejection = {"outlier_detection": {"interval": "0.5s", "base_ejection_time": "600s", "max_ejection_time": "600s",
                                      "max_ejection_percent": 50, "enforcing_success_rate": 0, "enforcing_failure_percentage": 100,
                                      "failure_percentage_threshold": 50, "failure_percentage_minimum_hosts": 2,
                                      "failure_percentage_request_volume": 10}}
    with world_of(paths, "--metadata=UnaryCall:rpc-behavior:hostname=b0 error-code-2") as world:
        world.serve_simply((0, 1, FOUR[:3]), cluster_fields=ejection)
        world.settle(FOUR[1:3], "the hosts that do not fail")
        check(set(world.codes_over("UNARY_CALL", QPS)) == {OK}, "RPCs still reach the ejected host")
        world.ask("Configure", types=["UNARY_CALL"])
        ejection["outlier_detection"]["base_ejection_time"] = "0.5s"
        world.serve_simply((0, 1, FOUR[:3]), cluster_fields=ejection)
        world.settle(FOUR[:3], "the host that no longer fails, and the others")


def csds(paths):
    """The client shows, on the stats port, that it holds one resource of each type and took it."""
    with world_of(paths, FAIL) as world:
        world.serve_simply((0, 1, FOUR))
        world.settle(FOUR, "each of four backends")
        [config] = world.ask("FetchClientStatus")["config"]
        held = {(r["typeUrl"].rsplit(".", 1)[1], r["name"], r["clientStatus"], r["versionInfo"]) for r in config["genericXdsConfigs"]}
        names = {"Listener": NAME, "RouteConfiguration": NAME, "Cluster": "one", "ClusterLoadAssignment": "one"}
        check(held == {(kind, name, "ACKED", str(world.version)) for kind, name in names.items()}, f"CSDS shows {held}")
        check(config["node"]["id"] == "interop" and config["clientScope"] == f"xds:///{NAME}", f"of {config['clientScope']}")


CASES = [ping_pong, round_robin, backends_restart, secondary_locality_gets_requests_on_primary_failure,
         secondary_locality_gets_no_requests_on_partial_primary_failure, remove_instance_group, change_backend_service,
         traffic_splitting, path_matching, header_matching, gentle_failover, load_based_failover, circuit_breaking, timeout,
         api_listener, forwarding_rule_port_match, fault_injection, retry, affinity,
         outlier_detection, csds, *psm_policies.CASES]


def run(paths, options):
    if options.peers and "go" not in options.peers:
        return
    peer = "go-control-plane, grpc-go"
    try:
        version = f"{paths.go_module('github.com/envoyproxy/go-control-plane')}, {paths.go_module('google.golang.org/grpc')}"
    except build_peers.Missing as missing:
        yield {"peer": peer, "version": "", "skipped": len(CASES), "why": [str(missing)]}
        return
    faults = []
    for case in CASES:
        try:
            case(paths)
        except Failure as failure:
            faults.append(f"{case.__name__}: {failure}")
    yield {"peer": peer, "version": version, "cases": len(CASES), "passed": len(CASES) - len(faults), "failed": len(faults),
           "why": faults}
