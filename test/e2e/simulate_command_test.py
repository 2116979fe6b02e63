"""torc simulate: the same twice, the same in each form, what policies promise, and bad input."""
import collections
import csv
import io
import json
import os
import random
import shlex
import sys
import tempfile
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import blocks, check, cluster, endpoints, main, run, write_resources

SHORT = ("--clients", "20", "--duration", "10s")
BOUNDED = 'ring_hash={"hashBalanceFactor": 125}'


def simulate(*args, **more):
    (line,) = run("simulate", *args, "-o", "json", **more).stdout.splitlines()
    return json.loads(line)["simulate"]


def calls_of(figures):
    return [b["calls"] for b in figures["backends"]]


def test_the_same_twice():
    args = ("simulate", "--backends", "9", *SHORT, "--kill", "10.0.0.4:80@3s", "--restore", "10.0.0.4:80@6s", "--hot", "20:3", "--zipf", "1.1",
            "-o", "csv", "--policy", "ring_hash")
    two = (*args, "--policy", "weighted_round_robin")
    check(run(*two).stdout == run(*two).stdout, "two policies")
    with tempfile.TemporaryDirectory() as folder:
        def once(*more):
            path = os.path.join(folder, "calls")
            text = run(*args, *more, "--calls", path).stdout
            with open(path, encoding="ascii") as calls:
                return text, calls.read()

        first = once()
        check(first == once("--seed", "1"), "the same seed, which is 1 where none is given")
        other = once("--seed", "2")
        check(first[0] != other[0] and first[1] != other[1], "another seed")


def test_policies_get_the_same_calls():
    with tempfile.TemporaryDirectory() as folder:
        def calls(policy):
            path = os.path.join(folder, "calls")
            run("simulate", "--backends", "5", *SHORT, "--policy", policy, "--calls", path)
            with open(path, encoding="ascii") as lines:
                return [line.rstrip("\n").split(",") for line in lines]

        ring, turns = calls("ring_hash"), calls("round_robin")
        check(sorted(c[1:3] for c in ring) == sorted(c[1:3] for c in turns) and len(ring) > 1500, "clients and keys")
        homes = {(key, backend) for _, _, key, backend in ring}
        check(len(homes) == len({key for key, _ in homes}), "each key has one home, whichever client calls")
        by_command = run("ring", *(part for i in range(1, 6) for part in ("-e", f"10.0.0.{i}:80")), "--key", "-",
                         stdin="".join(key + "\n" for key, _ in sorted(homes))).stdout
        check([line.split()[2] for line in by_command.splitlines()] == [home for _, home in sorted(homes)], "torc ring agrees")


def test_forms_agree():
    args = ("--backends", "3", *SHORT, "--kill", "10.0.0.2:80@4s", "--add", "10.0.0.9:80@6s")
    figures = simulate(*args)
    rows = list(csv.DictReader(io.StringIO(run("simulate", *args, "-o", "csv").stdout)))
    backends = [r for r in rows if r["kind"] == "backend"]
    phases = [r for r in rows if r["kind"] == "phase"]
    check(len(backends) == 4 and len(phases) == 3 and len(rows) == 7, str(rows))
    for row, b in zip(backends, figures["backends"]):
        check(row["name"] == b["backend"] and all(float(row[k]) == b[k] for k in b if k != "backend"), f"{row} {b}")
    for row, p in zip(phases, figures["phases"]):
        check(row["name"] == p["change"] and all(float(row[k]) == p[k] for k in p if k != "change"), f"{row} {p}")
    check(sum(calls_of(figures)) == figures["calls"] == sum(p["calls"] for p in figures["phases"]), "sums")
    check([p["change"] for p in figures["phases"]] == ["start", "kill 10.0.0.2:80", "add 10.0.0.9:80"], "names")
    text = run("simulate", *args).stdout.splitlines()
    for b in figures["backends"]:
        (line,) = [line for line in text if line.startswith(b["backend"] + " ")]
        check(line.split()[2] == str(b["calls"]) and abs(float(line.split()[3].rstrip("%")) - 100 * b["share"]) < 0.002, line)
    compared = run("simulate", *args, "--policy", "round_robin", "--policy", "maglev").stdout.splitlines()
    check(compared[1].split()[:2] == ["round_robin", str(figures["calls"])] and compared[2].startswith("maglev "), str(compared))


def test_pictures():
    policy = 'ring_hash={"requestHashHeader": "<k>&\'\x01\uffff"}'
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.svg")
        args = ("simulate", "--backends", "1100", *SHORT, "--policy", "maglev", "--policy", "round_robin")
        run(*args, "--kill", "10.0.0.1:80@5s", "--svg", path)
        picture = xml.dom.minidom.parse(path)
        titles = [t.firstChild.data for t in picture.getElementsByTagName("title")]
        check(len(titles) == 2 * (2 * 1000 + 2 * 2), f"{len(titles)} bars: of 1,100 backends 1,000")
        done = run("simulate", "--backends", "1", *SHORT, "--policy", policy, "--svg", "-", status=None)
        if done.returncode == 0:
            check("<k>&'" in xml.dom.minidom.parseString(done.stdout).getElementsByTagName("text")[0].firstChild.data, done.stdout)
        unix = simulate("-e", "unix:/a<&>\"b", *SHORT)
        text = run("simulate", "-e", "unix:/a<&>\"b\x02\uffff", *SHORT, "--svg", "-").stdout
        check(unix["backends"][0]["backend"] == "unix:/a<&>\"b", str(unix["backends"]))
        check('unix:/a<&>"b\\u0002: ' in xml.dom.minidom.parseString(text).getElementsByTagName("title")[0].firstChild.data, text)


def test_what_policies_promise():
    even = simulate("--backends", "7", *SHORT)
    check(max(calls_of(even)) - min(calls_of(even)) <= 20 and even["connections"] == 140, f"round robin: {even}")
    first = simulate("--backends", "7", *SHORT, "--policy", "pick_first")
    check(calls_of(first)[0] == first["calls"] and first["connections"] == 20, f"pick_first: {first}")
    ring = simulate("--backends", "7", *SHORT, "--policy", "ring_hash", "--keys", "1")
    check(max(calls_of(ring)) == ring["calls"] and ring["connections"] == 20, f"one key: {ring}")
    hot = simulate("--backends", "7", "--clients", "2", "--rate", "1000", "--duration", "5s", "--policy", BOUNDED, "--hot", "50")
    check(hot["busiest"] < 2.5, f"a hot key that is bounded: {hot['busiest']}")
    free = simulate("--backends", "7", "--clients", "2", "--rate", "1000", "--duration", "5s", "--policy", "ring_hash", "--hot", "50")
    check(free["busiest"] > 3.5 and free["calls"] == hot["calls"], f"and one that is not: {free['busiest']}")


def test_load_reports():
    """A backend that takes three times as long gets a third, by reports with calls and out of band."""
    for more in ("", ', "enableOobLoadReport": true, "oobReportingPeriod": "1s"'):
        policy = 'weighted_round_robin={"blackoutPeriod": "0s"' + more + "}"
        figures = simulate("--backends", "4", *SHORT, "--warm-up", "5s", "--policy", policy, "--slow", "10.0.0.1:80=3")
        shares = [b["share"] for b in figures["backends"]]
        check(abs(shares[0] - 0.1) < 0.01 and all(abs(s - 0.3) < 0.01 for s in shares[1:]), f"{policy}: {shares}")


def test_changes():
    backends = ("--backends", "10", "--clients", "20", "--rate", "50", "--duration", "40s", "--keys", "500", "--policy", "ring_hash")
    figures = simulate(*backends, "--kill", "10.0.0.3:80@10s", "--restore", "10.0.0.3:80@20s")
    _, dead, back = figures["phases"]
    third = figures["backends"][2]
    check(dead["keys"] == back["keys"] == 500 and dead["moved"] == back["moved"] > 10, f"its keys move, and return: {figures['phases']}")
    check(third["failed"] == dead["failed"] and back["failed"] == 0, f"calls that it had: {third}")
    check(third["connections"] == third["most_connections"] == 20, f"connected again: {third}")
    gone = simulate(*backends, "--remove", "10.0.0.3:80@10s")
    moved = gone["phases"][1]["moved"]
    check(dead["moved"] <= moved < 2 * dead["moved"] and gone["backends"][2]["connections"] == 0, f"removed: {gone['phases']}")
    check(gone["failed"] == 0, "a backend that leaves the list ends its calls")
    came = simulate(*backends, "--remove", "10.0.0.3:80@10s", "--add", "10.0.0.3:80@30s")
    check(came["phases"][2]["moved"] == came["phases"][1]["moved"] == moved, f"and comes again: {came['phases']}")
    none = simulate("--backends", "1", *SHORT, "--remove", "10.0.0.1:80@5s")
    check(none["failed"] == none["phases"][1]["calls"], f"no backend: {none['phases']}")
    wait = simulate("--backends", "1", *SHORT, "--kill", "10.0.0.1:80@5s", "--policy", "pick_first")
    check(wait["failed"] + wait["backends"][0]["calls"] - wait["backends"][0]["failed"] + wait["waiting"] == wait["calls"], str(wait))


def test_capacity_and_overload():
    args = ("--backends", "2", "--clients", "10", "--rate", "10", "--duration", "20s", "--service", "100ms", "--policy", "round_robin")
    fits = simulate(*args, "--capacity", "20")
    check(fits["overload_limit"] == 20 and fits["overload_s"] == 0, str(fits))
    full = simulate(*args, "--capacity", "7", "--kill", "10.0.0.1:80@10s")
    check(full["phases"][0]["overload_s"] < 5 and full["phases"][1]["longest_s"] > 8, f"one does the work of two: {full['phases']}")
    check(full["backends"][1]["at_once"] > 10, "calls wait")


def test_resources():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mesh.json")
        eds = endpoints("orders", "10.1.0.1:80", "10.1.0.2:80")
        (one,) = eds["endpoints"]
        two = endpoints("orders", "10.2.0.1:80")["endpoints"][0]
        eds["endpoints"] = [{**one, "load_balancing_weight": 1}, {**two, "locality": {"region": "s"}, "load_balancing_weight": 3}]
        write_resources(path, "1", cluster("orders", lb_policy="ROUND_ROBIN"), eds)
        given = ("--resources", path, "--cluster", "orders", *SHORT)
        figures = simulate(*given, "--rate", "100")
        shares = {b["backend"]: b["share"] for b in figures["backends"]}
        check(figures["policy"].startswith("xds_wrr_locality"), figures["policy"])
        check(abs(shares["10.2.0.1:80"] - 0.75) < 0.02 and abs(shares["10.1.0.1:80"] - 0.125) < 0.01, f"weights of localities: {shares}")
        figures = simulate(*given, "--remove", "10.2.0.1:80@5s")
        (left,) = [b for b in figures["backends"] if b["backend"] == "10.2.0.1:80"]
        check(figures["failed"] == 0 and 0.3 < left["share"] < 0.45, f"a locality that empties: {figures}")
        check(simulate(*given, "--policy", "pick_first")["policy"] == "pick_first", "another policy")
        write_resources(path, "2", cluster("orders", lb_policy="RING_HASH"), eds)
        check(simulate(*given)["policy"].startswith("ring_hash"), "the cluster's own")
        for more, wanted in ((("--add", "10.9.0.1:80@1s"), "--resources"), (("--priority", "1"), "no priority 1")):
            done = run("simulate", *given, *more, status=None)
            check(done.returncode and wanted in done.stderr, done.stderr)


def test_extremes():
    """Calls that never end, loads far below one call, wide tables, backends that are removed, and names with a comma
    and a line end."""
    for_ever = simulate("--backends", "2", *SHORT, "--service", "24h", "--slow", "10.0.0.1:80=1000000")
    check(all(b["at_once"] == b["calls"] > 900 for b in for_ever["backends"]), f"none ends: {for_ever['backends']}")
    little = simulate("--backends", "200", *SHORT, "--rate", "0.1")
    check(little["overload_limit"] == 1 and little["overload_s"] == 0, f"one call is not too much: {little['overload_limit']}")
    wide = run("simulate", "--backends", "2", *SHORT, "--policy", SUBSETS, "--policy", "round_robin").stdout.splitlines()
    check(len({len(line) for line in wide[:3]}) == 1, str(wide))
    gone = simulate("--backends", "1", *SHORT, "--remove", "10.0.0.1:80@5s")
    check(gone["first_failure"] == "empty address list" and "first_failure" not in little, str(gone))
    text = run("simulate", "--backends", "1", *SHORT, "--remove", "10.0.0.1:80@5s").stdout
    check(text.endswith("\nround_robin: calls failed without a backend, the first with: empty address list\n"), text)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls")
        run("simulate", "-e", "unix:/a,b\nc", *SHORT, "--calls", path)
        with open(path, encoding="ascii") as lines:
            check({line.split(",", 3)[3] for line in lines} == {"unix:/a,b\\u000ac\n"}, "a call is a line")


def test_changes_of_one_moment():
    """They keep the order of the command line, however an option is written; --add may follow what names its backend."""
    args = ("--backends", "2", *SHORT)
    figures = simulate(*args, "--kill=10.0.0.1:80@5s", "-restore=10.0.0.1:80@5s")
    check(figures["phases"][-1]["change"] == "kill 10.0.0.1:80, restore 10.0.0.1:80", str(figures["phases"]))
    figures = simulate(*args, "--kill", "10.0.1.1:80@9s", "--add", "10.0.1.1:80@5s")
    check([p["change"] for p in figures["phases"]] == ["start", "add 10.0.1.1:80", "kill 10.0.1.1:80"], str(figures["phases"]))


def test_sums():
    """Whatever changes, each call is one that a backend got, failed without one, or waits; phases and backends say the same."""
    chance = random.Random(1)
    policies = ["pick_first", "ring_hash", "maglev", BOUNDED, "least_request_experimental", 'weighted_round_robin={"blackoutPeriod": "0s"}']
    for _ in range(25):
        args, state = ["--backends", "3", "--clients", chance.choice("17"), "--rate", "100", "--duration", "6s"], set()
        args += ["--policy", chance.choice(policies), "--service", chance.choice(["0s", "10ms", "2s"]), "--capacity", chance.choice(["2", "500"])]
        for at_ms in sorted(chance.choice([0, 1, 2000, 2000, 4000, 5999]) for _ in range(6)):
            backend, names = f"10.0.0.{chance.randrange(3) + 1}:80", chance.choice([("--kill", "--restore"), ("--remove", "--add"), ("--slow", "--slow")])
            args += [names[(backend, names) in state], backend + ("=30" if names[0] == "--slow" else "") + f"@{at_ms}ms"]
            state ^= {(backend, names)}
        figures = simulate(*args)
        backends, phases = figures["backends"], figures["phases"]
        without = figures["failed"] - sum(b["failed"] for b in backends)
        check(sum(calls_of(figures)) + without + figures["waiting"] == figures["calls"] and without >= 0, f"{args}: {figures}")
        check(all(sum(p[k] for p in phases) == figures[k] for k in ("calls", "failed")), f"{args}: {figures}")
        check(all(abs(sum(x["overload_s"] for x in of) - figures["overload_s"]) < 1e-4 for of in (backends, phases)), f"{args}: {figures}")


SUBSETS = 'random_subsetting_experimental={"subsetSize": 1, "childPolicy": [{"maglev": {"tableSize": 5000011}}]}'

WRONG = [
    # arguments behind --backends 2, and what the one line says
    (["--clients", "0"], "--clients: '0'"), (["--rate", "inf"], "--rate: 'inf'"), (["--rate", "nan"], "--rate"), (["--keys", "0"], "--keys"),
    (["--policy", "nope"], "no LB policy 'nope'"), (["--policy", "ring_hash={"], "not JSON"), (["--policy", "ring_hash=[]"], "must be an object"),
    (["--policy", 'ring_hash={"minRingSize": 0}'], "minRingSize"), (["--policy", "priority"], "children"), (["--policy", ""], "no LB policy ''"),
    (["--kill", "x@5s"], "--kill x@5s: there is no such backend"), (["--kill", "10.0.0.1:80"], "without a moment"), (["--kill", ""], "without a moment"),
    (["--kill", "10.0.0.1:80@-5s"], "@ is not a duration"), (["--kill", "10.0.0.1:80@1h"], "see --duration"), (["--kill", "@5s"], "no such backend"),
    (["--kill", "10.0.0.1:80@5s", "--kill", "10.0.0.1:80@6s"], "dead by then"), (["--restore", "10.0.0.1:80@5s"], "lives by then"),
    (["--add", "10.0.0.1:80@5s"], "in the list by then"), (["--add", "x@5s"], "not an address"), (["--add", "1.1.1.1:1=0@5s"], "a weight"),
    (["--remove", "10.0.0.1:80@5s", "--remove", "10.0.0.1:80@5s"], "not in the list by then"),
    (["--slow", "10.0.0.1:80"], "it needs =F"), (["--slow", "10.0.0.1:80=nan"], "it needs =F"), (["--slow", "10.0.0.1:80=0"], "it needs =F"),
    (["--slow", "10.0.0.1:80=2@"], "@ is not a duration"), (["--hot", "101"], "--hot"), (["--hot", "-1"], "--hot"), (["--hot", "5:0"], "--hot"),
    (["--hot", "5:10001"], "only 10000 keys"), (["--zipf", "-1"], "--zipf"), (["--zipf", "inf"], "--zipf"), (["--duration", "0s"], "--duration"),
    (["--duration", "-1s"], "--duration"), (["--service", "99h"], "too long"), (["--warm-up", "1"], "--warm-up"), (["-o", "xml"], "csv"),
    (["--clients", "1000000", "--rate", "1000000"], "can be simulated"), (["--clients", "2", "--memory", "1k"], "see --memory"),
    (["-e", "1.1.1.1:1"], "one of them"), (["--cluster", "c"], "go together"), (["--priority", "1"], "--priority"), (["more"], "unexpected"),
    (["--calls", "-"], "--calls writes a file"), (["--calls", "x", "--policy", "maglev", "--policy", "round_robin"], "--calls goes with one"),
    (["--remove", "10.0.0.1:80@1s", "--add", "10.0.0.1:80=7@2s"], "has its old weight"),
    (["--svg", ""], "--svg"), (["--calls", ""], "--calls"), (["--nonsense"], "unknown option"), (["--backends"], "needs a value"),
]


def test_bad_input():
    for args, wanted in WRONG:
        done = run("simulate", "--backends", "2", *args, status=2)
        check(wanted in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, f"{args}: {done.stderr}")
    for args, wanted in (([], "no endpoints"), (["-e", "a"], "not an address"), (["-e", "1.1.1.1:1", "-e", "1.1.1.1:1"], "given twice"),
                         (["--backends", "100000", "--clients", "1000000"], "MB of memory"), (["--endpoints", "-"], "no endpoints")):
        done = run("simulate", *args, status=2)
        check(wanted in done.stderr and len(done.stderr.splitlines()) == 1, f"{args}: {done.stderr}")
    done = run("simulate", "--backends", "2", "--svg", "/nowhere/x", status=1)
    check("10.0.0.2:80 " in done.stdout, f"the table comes first: {done.stdout}")
    for args, wanted in ((["--svg", "/nowhere/x"], "cannot write /nowhere/x"), (["--calls", "/nowhere/x"], "cannot write /nowhere/x"),
                         (["--policy", SUBSETS, "--memory", "30M"], "}]} takes more than 31 MB of memory"),
                         (["--service", "24h", "--rate", "1000", "--memory", "100M"], "calls at a time; see --memory, --rate, --service")):
        done = run("simulate", "--backends", "2", *args, status=1)
        check(wanted in done.stderr and len(done.stderr.splitlines()) == 1, f"{args}: {done.stderr}")


def test_files_of_endpoints():
    figures = simulate("--endpoints", "-", *SHORT, "--policy", "ring_hash", stdin="# two\n10.0.0.1:80=3\r\n\n10.0.0.2:80\n")
    check([b["weight"] for b in figures["backends"]] == [3, 1] and figures["backends"][0]["share"] > 0.6, str(figures["backends"]))


def test_many():
    """1,000 clients and 1,000 backends fit: with a connection of each to each (round_robin), and by ring_hash."""
    for policy in ("round_robin", "ring_hash"):
        done = simulate("--backends", "1000", "--clients", "1000", "--duration", "1s", "--policy", policy)
        counts = collections.Counter(b["connections"] for b in done["backends"])
        check(policy == "ring_hash" or counts == {1000: 1000}, f"{policy}: {counts.most_common(3)}")


def test_guide():
    """The first command of docs/guide/simulate.md prints what stands there."""
    (block,) = blocks("docs/guide/simulate.md", "console")
    command, _, wanted = block.partition("\n")
    printed = run(*shlex.split(command)[2:]).stdout
    check(printed == wanted, f"{command}\n{printed}")


main(test_guide, test_the_same_twice, test_policies_get_the_same_calls, test_forms_agree, test_pictures, test_what_policies_promise, test_load_reports,
     test_changes, test_changes_of_one_moment, test_capacity_and_overload, test_sums, test_resources, test_extremes, test_bad_input, test_files_of_endpoints, test_many)
