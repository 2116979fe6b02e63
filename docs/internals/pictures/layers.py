"""The floors of src/: a folder includes only what stands below it."""
from draw import Picture

p = Picture(880, 560)
ROWS = [  # from the top
    [("applications, cmd/torc", 0.62, "plain"), ("controlplane: ADS, LRS, YAML (not in libtorc)", 0.38, "plain")],
    [("api: the functions of include/torc, builtin", 1.0, "yellow")],
    [("xds/filter", 0.18, "violet"), ("xds/domain", 0.2, "violet"), ("xds/lb", 0.3, "violet"), ("xds/resolver", 0.32, "violet")],
    [("channel: channel, call, retry", 0.48, "green"), ("server", 0.14, "blue"), ("xds/resource: decoded", 0.38, "violet")],
    [("runtime", 0.3, "green"), ("resolver", 0.3, "green"), ("xds/bootstrap, xds/load, xds/client", 0.4, "violet")],
    [("subchannel: pool, connections", 0.6, "green"), ("lb/policies, lb/ring_hash, lb/outlier_detection", 0.4, "green")],
    [("creds, creds/call", 0.3, "blue"), ("http2", 0.3, "blue"), ("lb: the policy interface", 0.4, "green")],
    [("tls", 0.6, "blue"), ("ring", 0.15, "green"), ("proto", 0.125, "blue"), ("regex", 0.125, "blue")],
    [("io: loop, sockets, DNS", 0.75, "blue"), ("", 0.25, None)],
    [("base: memory, text, status, log, threads", 1.0, "plain")],
]
y = 44
p.text(440, 26, "Each folder includes only what stands below it (test/lint/includes.py)", weight="bold")
for row in ROWS:
    x = 20.0
    for title, share, fill in row:
        width = share * 840
        if fill:
            p.box(round(x + 3), y, round(width - 6), 42, title, fill=fill)
        x += width
    y += 50
p.write(__file__)
