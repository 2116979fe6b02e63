"""How a configuration travels: from the control plane to a picker."""
from draw import Picture

p = Picture(900, 640)
STEPS = [
    ("control plane", ["Listener, RouteConfiguration,", "Cluster, ClusterLoadAssignment"], "plain", "ADS"),
    ("xds/client", ["the ADS stream; one message at a time"], "violet", "bytes"),
    ("proto", ["scanned, then unpacked into an arena"], "blue", "messages"),
    ("xds/resource", ["typed, validated, immutable"], "violet", "resources"),
    ("xds/client cache", ["state of each resource, watchers"], "violet", "on change"),
    ("xds/resolver dependency manager", ["one watch for each resource a channel needs"], "violet", "XdsConfig"),
]
y = 20
for i, (title, notes, fill, out) in enumerate(STEPS):
    p.box(40, y, 330, 62, title, notes, fill)
    if i + 1 < len(STEPS):
        p.arrow(205, y + 62, 205, y + 96, out)
    y += 96
p.arrow(370, 540, 530, 540, "XdsConfig")
p.box(530, 500, 330, 76, "xds/resolver xds_resolver", ["an LB config, the XdsConfig,", "and a config selector (routes)"], "violet")
UP = [
    ("channel", ["the resolver's result is one atomic change"], "green", "update"),
    ("LB tree of each cluster (A75)", ["cds, outlier_detection, cluster_impl,", "override_host, priority, ring_hash, pick_first"], "green", "pickers"),
    ("picker", ["immutable; the channel keeps the root's"], "yellow", ""),
]
y, into = 388, "result"
for title, notes, fill, out in UP:
    p.box(530, y, 330, 70, title, notes, fill)
    p.arrow(695, y + 112 if into == "result" else y + 112, 695, y + 70, into, side="right")
    y, into = y - 112, out
p.arrow(370, 340, 450, 300, dashed=True)
p.text(455, 304, "NACK with every", 11, anchor="start")
p.text(455, 318, "validation error", 11, anchor="start")
p.text(695, 120, "Calls pick from the new picker", 12, weight="bold")
p.text(695, 138, "from the next turn of the loop on.", 12)
p.arrow(695, 164, 695, 148)
p.write(__file__)
