"""Boxes, arrows and captions as SVG, for the scripts beside this file. Each script writes the .svg that bears its name: run it by hand
after a change (python3 docs/internals/pictures/layers.py) and commit both."""
import html
import pathlib
import sys

FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
FILLS = {"plain": "#f6f8fa", "blue": "#ddf4ff", "green": "#dafbe1", "yellow": "#fff8c5", "red": "#ffebe9", "violet": "#fbefff"}


def fitting(text, size, em, width):
    """The size, or a smaller one at which a text whose letters are `em` wide on average fits into the box."""
    return round(min(size, (width - 8) / (em * len(text))), 1)


class Picture:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def text(self, x, y, text, size=13, weight="normal", anchor="middle", colour="#1f2328"):
        self.parts.append(f"<text x='{x}' y='{y}' font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' "
                          f"fill='{colour}' {FONT}>{html.escape(text)}</text>")

    def box(self, x, y, width, height, title, notes=(), fill="plain"):
        self.parts.append(f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='5' fill='{FILLS[fill]}' stroke='#57606a'/>")
        top = y + height / 2 - 8 * len(notes) + 5
        self.text(x + width / 2, top, title, fitting(title, 13, 0.68, width), "bold")
        for i, note in enumerate(notes, 1):
            self.text(x + width / 2, top + 16 * i, note, fitting(note, 11, 0.6, width))

    def arrow(self, x1, y1, x2, y2, text="", side="right", dashed=False):
        dash = " stroke-dasharray='5 4'" if dashed else ""
        self.parts.append(f"<line x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}' stroke='#57606a' stroke-width='1.5'{dash} marker-end='url(#head)'/>")
        if text:
            x, y = (x1 + x2) / 2, (y1 + y2) / 2
            if x1 == x2:
                self.text(x + (7 if side == "right" else -7), y + 4, text, 11, anchor="start" if side == "right" else "end")
            else:
                self.text(x, y - 6, text, 11)

    def write(self, script):
        path = pathlib.Path(script).with_suffix(".svg")
        head = "<defs><marker id='head' markerWidth='9' markerHeight='9' refX='8' refY='4' orient='auto'><path d='M0,0 L8,4 L0,8 z' fill='#57606a'/></marker></defs>"
        body = "\n".join([f"<rect width='{self.width}' height='{self.height}' fill='#ffffff'/>", head, *self.parts])
        path.write_text(f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {self.width} {self.height}' width='{self.width}'>\n{body}\n</svg>\n",
                        encoding="utf-8")
        print(path, file=sys.stderr)
