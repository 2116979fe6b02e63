"""A hash ring of three endpoints and ten entries: one lookup, and what goes elsewhere when an endpoint is removed."""
import math

from draw import FONT, Picture

COLOURS = {"A": "#0969da", "B": "#1a7f37", "C": "#9a6700"}
ENTRIES = [(0.04, "A"), (0.13, "C"), (0.21, "B"), (0.33, "A"), (0.41, "C"), (0.52, "B"), (0.60, "A"), (0.71, "B"), (0.83, "C"),
           (0.93, "B")]
KEY = 0.27


def place(cx, turn, radius):
    angle = 2 * math.pi * turn - math.pi / 2
    return round(cx + radius * math.cos(angle), 1), round(170 + radius * math.sin(angle), 1)


def arc(p, cx, begin, end, colour):
    (x1, y1), (x2, y2) = place(cx, begin, 100), place(cx, end, 100)
    p.parts.append(f"<path d='M{x1},{y1} A100,100 0 0 1 {x2},{y2}' fill='none' stroke='{colour}' stroke-width='7'/>")


def ring(p, cx, entries, title):
    p.text(cx, 26, title, weight="bold")
    for before, (turn, endpoint) in zip([entries[-1], *entries], entries):
        arc(p, cx, before[0] - (before[0] > turn), turn, COLOURS[endpoint])
    for turn, endpoint in entries:
        (x, y), (tx, ty) = place(cx, turn, 100), place(cx, turn, 122)
        p.parts.append(f"<circle cx='{x}' cy='{y}' r='8' fill='{COLOURS[endpoint]}' stroke='#ffffff' stroke-width='2'/>")
        p.text(tx, ty + 5, endpoint, weight="bold", colour=COLOURS[endpoint])
    (x, y), (x2, y2) = place(cx, KEY, 20), place(cx, KEY, 88)
    p.arrow(x, y, x2, y2)
    p.text(cx, 154, "hash of", 12)
    p.text(cx, 190, "user: u7", 12)


p = Picture(880, 330)
ring(p, 220, ENTRIES, "ten entries of A, B and C")
ring(p, 660, [e for e in ENTRIES if e[1] != "A"], "A has gone")
p.text(220, 318, "the key goes to the next entry clockwise: A", 12)
p.text(660, 318, "to the entry after it: C. What was B's or C's stays", 12)
p.write(__file__)
