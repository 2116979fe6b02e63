"""README's picture: a program, its mesh, and no sidecar between them."""
from draw import Picture

p = Picture(880, 300)
p.box(20, 90, 330, 190, " ", fill="plain")
p.text(185, 114, "a C program", weight="bold")
p.box(40, 128, 120, 132, "its code", ["typed stubs,", "an event loop", "or threads"])
p.box(190, 128, 142, 132, "Torc", ["route, hash, pick,", "retry, eject, limit,", "report"], fill="green")
p.arrow(160, 194, 188, 194)
p.box(430, 14, 250, 54, "control plane", ["Istio, go-control-plane, Torc's own"], fill="violet")
p.arrow(452, 70, 334, 142, dashed=True)
p.text(396, 92, "xDS", 12)
p.text(450, 118, "load reports", 12, anchor="start")
p.arrow(330, 166, 500, 70, dashed=True)
for i, (name, note, fill, y) in enumerate([("backend 1", "zone a", "blue", 96), ("backend 2", "zone a", "blue", 162),
                                           ("backend 3", "zone b: failover", "plain", 228)]):
    p.box(640, y, 200, 52, name, [note], fill=fill)
    p.arrow(334, 196 + 8 * i, 638, y + 26, dashed=i == 2)
p.text(490, 186, "gRPC over HTTP/2", 12)
p.write(__file__)
