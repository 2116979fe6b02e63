"""Cases of the PSM suite for LB policies. session_affinity, session_drain, failover and dualstack are cases of gRPC's
psm-interop, and typed_struct is part of one. The other cases have the same form; psm-interop has none of
weighted_round_robin, least_request, random_subsetting and pick_first's shuffle."""
from plane_world import check
from psm_world import QPS, check_even, cluster, listener, route_config, to, world_of

POLICIES = "type.googleapis.com/envoy.extensions.load_balancing_policies"
FOUR, EIGHT = [f"b{i}" for i in range(4)], [f"b{i}" for i in range(8)]


def policies(*configs):
    """A cluster's load_balancing_policy: the first that the client knows counts."""
    return {"policies": [{"typed_extension_config": {"name": "x", "typed_config": config}} for config in configs]}


def serve_policy(world, groups, *configs, **fields):
    world.serve(listener(), route_config(to("one")), cluster("one", load_balancing_policy=policies(*configs), **fields),
                world.assignment("one", *groups))


def weighted_round_robin(paths):
    """RPCs by the inverse of the utilization that the hosts report: with each RPC, and out of band."""
    for out_of_band in (False, True):
        with world_of(paths) as world:
            world.order({"load": {"b0": 0.2, "b1": 0.4, "b2": 0.4}})
            settings = {"@type": f"{POLICIES}.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin", "blackout_period": "0s",
                        "weight_update_period": "0.1s", "enable_oob_load_report": out_of_band}
            serve_policy(world, [(0, 1, FOUR[:3])], {"@type": f"{POLICIES}.wrr_locality.v3.WrrLocality", "endpoint_picking_policy": policies(settings)})

            def split(b0, b1, b2):
                wanted = {"b0": b0, "b1": b1, "b2": b2}
                world.until(lambda peers, failures, _: not failures and set(peers) == set(wanted) and
                            all(abs(peers[host] - n) <= 5 for host, n in wanted.items()), f"RPCs by load, {wanted}", rpcs=200)
            split(100, 50, 50)
            if not out_of_band:  # grpc-go's next report out of band would come after 30 s
                world.order({"load": {"b0": 0.4, "b1": 0.1}})
                split(200 * 0.25 / 1.5, 200 * 1 / 1.5, 200 * 0.25 / 1.5)


def least_request(paths):
    """A host whose RPCs take two seconds gets hardly any, where round_robin would give it a quarter."""
    with world_of(paths, "--metadata=UnaryCall:rpc-behavior:hostname=b0 sleep-2") as world:
        for config in ({"choice_count": 10}, {"selection_method": "FULL_SCAN"}):
            serve_policy(world, [(0, 1, FOUR)], {"@type": f"{POLICIES}.least_request.v3.LeastRequest", **config})
            world.until(lambda peers, failures, _: not failures and set(FOUR[1:]) <= set(peers) and peers.get("b0", 0) < QPS / 40,
                        f"the slow host is spared, {config}", rpcs=QPS)


def random_subsetting(paths):
    """Each of three clients uses four of eight hosts, and not all the same four."""
    seen = set()
    for _ in range(3):
        with world_of(paths) as world:
            serve_policy(world, [(0, 1, EIGHT)], {"@type": f"{POLICIES}.random_subsetting.v3.RandomSubsetting", "subset_size": 4,
                                                  "child_policy": policies({"@type": f"{POLICIES}.round_robin.v3.RoundRobin"})})
            peers, _, _ = world.until(lambda peers, failures, _: not failures and len(peers) == 4, "four of eight hosts")
            check_even(peers, 25)
            seen |= set(peers)
    check(len(seen) > 4, f"three clients chose {seen}")


def pick_first(paths):
    """All channels use the first host; with a shuffle they use several."""
    with world_of(paths, "--num_channels=20", "--qps=20") as world:
        config = {"@type": f"{POLICIES}.pick_first.v3.PickFirst"}
        serve_policy(world, [(0, 1, EIGHT)], config)
        world.settle(["b0"], "the first host")
        serve_policy(world, [(0, 1, EIGHT[::-1])], {**config, "shuffle_address_list": True})
        world.stop("b0")  # 20 channels choose again
        peers, _, _ = world.until(lambda peers, failures, _: not failures and peers and "b0" not in peers, "hosts by chance")
        check(len(peers) > 1, f"20 channels chose {peers}")


def with_sessions():
    chain = listener()
    cookie = {"name": "ssa", "ttl": "50s"}
    chain["api_listener"]["api_listener"]["http_filters"].insert(0, {"name": "sessions", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession", "session_state": {
            "name": "cookie", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState", "cookie": cookie}}}})
    return chain


def begin_session(world):
    """(host, cookie) of an RPC without one."""
    [(host, of_host)] = world.ask("GetClientStats", numRpcs=1, timeoutSec=60, metadataKeys=["*"])["metadatasByPeer"].items()
    [cookie] = [entry["value"] for entry in of_host["rpcMetadata"][0]["metadata"] if entry["key"] == "set-cookie"]
    return host, cookie.split(";")[0]


def send_cookie(world, cookie=None):
    metadata = [{"type": "UNARY_CALL", "key": "cookie", "value": cookie}] if cookie else []
    world.ask("Configure", types=["UNARY_CALL"], metadata=metadata)


def session_affinity(paths):
    """A55: a host's cookie leads back to it; without one RPCs go to all."""
    with world_of(paths) as world:
        world.serve(with_sessions(), route_config(to("one")), cluster("one"), world.assignment("one", (0, 1, FOUR[:3])))
        world.settle(FOUR[:3], "all hosts")
        host, cookie = begin_session(world)
        send_cookie(world, cookie)
        world.settle([host], "the session's host")
        send_cookie(world)
        world.settle(FOUR[:3], "all hosts again")


def session_drain(paths):
    """A host that drains keeps its sessions and gets no RPCs beside them."""
    with world_of(paths) as world:
        def serve(draining):
            kept = {"common_lb_config": {"override_host_status": {"statuses": ["UNKNOWN", "HEALTHY", "DRAINING"]}}}
            assignment = world.assignment("one", (0, 1, FOUR[:3]))
            for place, endpoint in zip(FOUR, assignment["endpoints"][0]["lb_endpoints"]):
                endpoint["health_status"] = "DRAINING" if place == draining else "HEALTHY"
            world.serve(with_sessions(), route_config(to("one")), cluster("one", **kept), assignment)
        serve(None)
        world.settle(FOUR[:3], "all hosts")
        host, cookie = begin_session(world)
        send_cookie(world, cookie)
        world.settle([host], "the session's host")
        serve(host)
        send_cookie(world)
        world.settle(set(FOUR[:3]) - {host}, "the hosts that do not drain")
        send_cookie(world, cookie)
        world.settle([host], "the session's host, which drains")


def failover(paths):
    """Hosts become unhealthy one after the other; the secondary locality helps when two of three are, and serves when all are."""
    with world_of(paths) as world:
        def serve(unhealthy, primary, secondary):
            assignment = world.assignment("one", primary, secondary)
            for group, hosts in zip(assignment["endpoints"], (primary[2], secondary[2])):
                for host, endpoint in zip(hosts, group["lb_endpoints"]):
                    endpoint["health_status"] = "UNHEALTHY" if host in unhealthy else "HEALTHY"
            world.serve(listener(), route_config(to("one")), cluster("one"), assignment)
        primary, secondary = FOUR[:3], FOUR[3:]
        serve([], (0, 100, primary), (1, 100, secondary))
        world.settle(primary, "the primary locality")
        serve(["b0"], (0, 100, primary), (1, 100, secondary))
        world.settle(["b1", "b2"], "what remains of the primary locality")
        serve(["b0", "b1"], (0, 33, primary), (0, 67, secondary))
        world.settle(["b2", "b3"], "the rest of the primary locality and the secondary one")
        serve(primary, (0, 100, primary), (1, 100, secondary))
        world.settle(secondary, "the secondary locality")
        serve([], (0, 100, primary), (1, 100, secondary))
        world.settle(primary, "the primary locality again")


def dualstack(paths):
    """Two of three hosts have an IPv6 address too, which refuses connections: each host counts once."""
    with world_of(paths) as world:
        assignment = world.assignment("one", (0, 1, FOUR[:3]))
        for i, endpoint in enumerate(assignment["endpoints"][0]["lb_endpoints"]):
            port = endpoint["endpoint"]["address"]["socket_address"]["port_value"]
            other = {"address": {"socket_address": {"address": "::1", "port_value": port}}}  # nobody listens there
            if i == 0:
                endpoint["endpoint"]["additional_addresses"] = [other]
            elif i == 1:
                endpoint["endpoint"] = {**other, "additional_addresses": [{"address": endpoint["endpoint"]["address"]}]}
        world.serve(listener(), route_config(to("one")), cluster("one"), assignment)
        world.settle(FOUR[:3], "each host")
        check_even(world.distribution(99)[0], 33)


def typed_struct(paths):
    """The first part of custom_lb: a policy that nobody has is passed over, and the next one's config is a Struct, too."""
    def custom(name, **value):
        return {"@type": "type.googleapis.com/xds.type.v3.TypedStruct", "type_url": f"type.googleapis.com/{name}", "value": value}
    with world_of(paths) as world:
        serve_policy(world, [(0, 1, FOUR)], custom("test.ThisLoadBalancerDoesNotExist", foo="bar"), custom("pick_first", shuffleAddressList=False))
        world.settle(["b0"], "pick_first's host")


CASES = [weighted_round_robin, least_request, random_subsetting, pick_first, session_affinity, session_drain, failover, dualstack, typed_struct]
