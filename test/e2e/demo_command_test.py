"""What a run of torc demo writes to its log: nothing by default or at warn, and at info one line an event (docs/operations/logs.md),
whatever the number of RPCs."""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import check, main, run

LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3} info  (\w+): (.*)")
CLUSTERS = ("checkout-a", "checkout-b", "orders")
RESOURCES = ["Listener shop.demo", "RouteConfiguration shop-routes", *(f"Cluster {c}" for c in CLUSTERS),
             *(f"ClusterLoadAssignment {c}" for c in CLUSTERS)]
GROWS = "ClusterLoadAssignment orders"  # the one resource that the demo changes
CHANNEL = "xds:///shop.demo"
BACKENDS = 5
STATE = re.compile(r"(\S+): (channel|connection|cluster) ([A-Z_]+)(?:: .*)?")
CHOSEN = re.compile(r"(\S+): priority 1 of 1 chosen, \S+")
ENDED = re.compile(r"(\S+): connection ended, \d+ streams cut off: .*")
REQUESTED = re.compile(r"(.*): requested")
ACKED = re.compile(r"(.*): acked version (\S+)")


def by_module(text):
    """{module: its texts, in order}; each line is one of info."""
    modules = collections.defaultdict(list)
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        check(match, f"not a line of info: {line}")
        modules[match[1]].append(match[2])
    return modules


def all_of(pattern, texts):
    """The matches of texts that are all of that kind."""
    matches = [pattern.fullmatch(text) for text in texts]
    check(all(matches), f"other lines than {pattern.pattern}: {texts}")
    return matches


def check_resources(texts):
    requested = [m[1] for m in map(REQUESTED.fullmatch, texts) if m]
    acked = [(m[1], m[2]) for m in map(ACKED.fullmatch, texts) if m]
    check(len(requested) + len(acked) == len(texts), f"other lines: {texts}")
    check(sorted(requested) == sorted(RESOURCES), f"each once: {requested}")
    check(sorted(name for name, _ in acked) == sorted([*RESOURCES, GROWS]), f"each once, and a change: {acked}")
    check(len(set(acked)) == len(acked), f"each version once: {acked}")


def check_servers(xds, resolved):
    server = re.compile(r"xds (\S+): channel created for all targets").fullmatch(xds[0])
    check(server, str(xds))
    check(xds[1:] == [f"xds {server[1]}: {text}" for text in ("stream opens, state of the world", "stream answers",
                                                              "channel closed")], str(xds))
    check(resolved == [f"{server[1]}: resolved, addresses: 1"], str(resolved))
    return server[1]


def states(texts):
    """{(who, what): its states in order}; a state is a line of its own only when it is a new one, or a new failure."""
    seen = collections.defaultdict(list)
    for who, what, state in (m.groups() for m in all_of(STATE, texts)):
        before = seen[who, what][-1:]
        check(before != [state] or (what, state) == ("connection", "TRANSIENT_FAILURE"), f"{who} {state} twice: {texts}")
        seen[who, what].append(state)
    return seen


def check_connections(seen, server, seconds):
    """Each backend is connected to once; the one that is stopped is lost, tried (after 0.8 s at least, each time) and regained."""
    check({who for who, what in seen if what == "channel"} == {CHANNEL, server}, str(seen))
    check(seen.pop((server, "connection")) == ["READY"] and seen.pop((server, "channel")) == ["CONNECTING", "READY"], str(seen))
    connections = {who: all_ for (who, what), all_ in seen.items() if what == "connection"}
    check(len(connections) == BACKENDS, str(connections))
    lost = {who: all_ for who, all_ in connections.items() if all_ != ["READY"]}
    check(len(lost) == 1, f"one is stopped: {connections}")
    (who, all_), = lost.items()
    failed = all_.count("TRANSIENT_FAILURE")
    check(all_ == ["READY", "IDLE", *["TRANSIENT_FAILURE"] * failed, "READY"] and failed <= 1 + seconds / 0.8, str(all_))
    # What stands above the connections changes with them: to CONNECTING, and from there.
    for (subject, what), all_ in seen.items():
        check(what == "connection" or len(all_) <= 2 * (1 + sum(map(len, connections.values()))), f"{subject}: {all_}")
    return who, BACKENDS + len(lost) + 1


def test_nothing_below_info():
    """By default nothing is logged (torc/log.h), and a run that meets no fault has nothing to warn of."""
    for levels in ("", "warn"):
        done = run("demo", "-o", "json", env={"TORC_LOG": levels})
        check(done.stderr == "", f"TORC_LOG={levels}: {done.stderr}")


def test_info():
    done = run("demo", "-o", "json", env={"TORC_LOG": "info"})
    seconds = json.loads(done.stdout)["demo"]["seconds"]
    lines = by_module(done.stderr)
    check(set(lines) == {"channel", "http2", "lb", "resolver", "resource", "xds"}, str(set(lines)))
    check_resources(lines["resource"])
    server = check_servers(lines["xds"], lines["resolver"])
    chosen = [m[1] for m in map(CHOSEN.fullmatch, lines["lb"]) if m]
    check(sorted(chosen) == sorted(CLUSTERS), f"one priority each, chosen once: {chosen}")
    seen = states(lines["channel"] + [text for text in lines["lb"] if not CHOSEN.fullmatch(text)])
    check({who for who, what in seen if what == "cluster"} == set(CLUSTERS), str(set(seen)))
    stopped, connections = check_connections(seen, server, seconds)
    # The client may say that the stopped backend's connection ended, and servers that the client closed theirs: once each.
    ended = [m[1] for m in all_of(ENDED, lines["http2"])]
    check(len(set(ended)) == len(ended) and len(set(ended) - {stopped}) <= connections, str(ended))


main(test_nothing_below_info, test_info)
