"""torc call --cookies: calls of one session, and what --explain says of it."""
import base64
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (ROUTER, bootstrap, calls, calls_to_all, check, cluster, endpoints, listener, main, routes, run, running,
                         with_time, write_resources)

TYPE = "type.googleapis.com/envoy.extensions."


def session_filter(instance, **cookie):
    state = {"@type": TYPE + "http.stateful_session.cookie.v3.CookieBasedSessionState", "cookie": cookie}
    return {"name": instance, "typed_config": {
        "@type": TYPE + "filters.http.stateful_session.v3.StatefulSession",
        "session_state": {"name": "envoy.http.stateful_session.cookie", "typed_config": state}}}


def mesh(path, filters, *addresses):
    front = listener("orders", "r")
    front["api_listener"]["api_listener"]["http_filters"] = [*filters, ROUTER]
    write_resources(path, "1", front, routes("r", {"match": {"prefix": ""}, "route": {"cluster": "orders"}}),
                    cluster("orders", lb_policy="ROUND_ROBIN"), endpoints("orders", *addresses))


class World:
    """Two backends and a control plane whose listener has these filters."""

    def __init__(self, *filters):
        self.filters = filters

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.parts = [running("backend", "--name", f"b{i}") for i in range(2)]
        self.addresses = [part.__enter__().listening() for part in self.parts]
        path = os.path.join(self.directory.name, "mesh.json")
        mesh(path, self.filters, *self.addresses)
        server = running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path)
        self.parts.append(server)
        self.env = bootstrap(server.__enter__().listening())
        return self

    def __exit__(self, *why):
        for part in reversed(self.parts):
            part.__exit__(*why)
        self.directory.cleanup()

    def call(self, *args, status=0):
        return calls("xds:///orders", *args, "--wait-for-ready", env=self.env, status=status)

    def spread(self, *args):
        """Makes runs of 20 calls, which must all succeed, until both backends have answered calls of one run."""
        runs = calls_to_all(self.addresses, "xds:///orders", *args, "-n", "20", "--wait-for-ready", env=self.env)
        for _, summary in runs:
            check(summary["calls"] == 20 and summary["ok"] == 20, f"round robin: {summary}")
        return runs

    def cookie(self, i, cluster_name="orders"):
        return base64.b64encode(f"{self.addresses[i]};cluster:{cluster_name}".encode()).decode()


def test_one_session():
    with World(session_filter("session", name="s", path="/a.B", ttl="120s")) as w:
        done, summary = w.call("a.B/C", "-n", "20", "--cookies", "--explain")
        check(len(summary["by_peer"]) == 1, f"one endpoint for all: {summary}")
        first = done[0]["headers"]["set-cookie"][0]
        at = w.addresses.index(done[0]["peer"])
        check(first == f"s={w.cookie(at)}; HttpOnly; Path=/a.B; Max-Age=120", first)
        check(not any("set-cookie" in call["headers"] for call in done[1:]), "set once")
        check(done[0]["explain"]["session"] == {"endpoint": done[0]["peer"]}, str(done[0]["explain"]))
        wanted = {"cookie": f"{done[0]['peer']};cluster:orders", "followed": True, "endpoint": done[0]["peer"]}
        check(all(call["explain"]["session"] == wanted and call["explain"]["policy"] == "xds_override_host"
                  for call in done[1:]), str(done[1]["explain"]))
        # Without the option each call begins anew; below another path there is no session.
        w.spread("a.B/C")
        for done, _ in w.spread("a.BC/D", "--cookies", "--explain"):
            check(not any("session" in call["explain"] for call in done), str(done[0]["explain"]))


def test_why_a_cookie_is_not_followed():
    with World(session_filter("session", name="s")) as w:
        gone = base64.b64encode(b"127.0.0.9:9;cluster:orders").decode()
        for cookie, reason in ((gone, "the cluster has no such endpoint"),
                               (w.cookie(0, "other"), "the route has no such cluster"), ("%", "the cookie is not base64")):
            done, _ = w.call("a.B/C", "-H", f"cookie: s={cookie}", "--explain")
            session = done[0]["explain"]["session"]
            check(session["followed"] is False and session["reason"] == reason, f"{reason}: {session}")
            check(session["endpoint"] == done[0]["peer"], str(session))
        # Where it would go, without sending: there is no connection yet, and none is made.
        lines = run("call", "-o", "json", "xds:///orders", "a.B/C", "-H", f"cookie: s={w.cookie(1)}", "--dry-run",
                    env=w.env).stdout.splitlines()
        explained = json.loads(lines[0])["call"]["explain"]
        check(explained["outcome"] == "wait" and explained["session"] == {
            "cookie": f"{w.addresses[1]};cluster:orders", "followed": False, "reason": "no connection yet",
            "endpoint": ""}, str(explained))


def in_turn(w, seconds):
    """Makes three calls, `seconds` apart. Returns the names of the cookies that each sent; its answer sets the
    others."""
    done, _ = w.call("torc.test.Backend/Headers", "-n", "3", "--rps", str(1 / seconds), "--cookies")
    sent = []
    for call in done:
        lines = bytes.fromhex(call["response_hex"]).decode().splitlines()
        cookies = [line.removeprefix("cookie: ") for line in lines if line.startswith("cookie: ")]
        names = "".join(cookie[0] for cookie in "; ".join(cookies).split("; ") if cookie)
        check(len(cookies) <= 1 and names in (("a", "ba") if sent else ("",)), f"{cookies} after {sent}")
        made = {value[0] for value in call["headers"].get("set-cookie", [])}
        check(made == set("ab") - set(names), f"sent {names}, set {made}")
        sent.append(names)
    return sent


def test_paths_and_ages():
    filters = session_filter("all", name="a"), session_filter("one", name="b", path="/torc.test.Backend", ttl="1s")
    with World(*filters) as w:
        # The longer path comes first. The one that is over after a second is set again, and the other stays.
        # A call that is late has the next one close behind it, which still sends both.
        with_time(lambda seconds: in_turn(w, seconds), lambda sent: sent[1:] == ["a", "a"], (1.25, 2.5, 5, 10))
        with_time(lambda seconds: in_turn(w, seconds), lambda sent: sent[1] == "ba", (0.01,) * 20)


main(test_one_session, test_why_a_cookie_is_not_followed, test_paths_and_ages)
