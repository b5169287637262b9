# SPDX-License-Identifier: MIT
"""plot.py - two panels, cost of a send and of a look against the size of the mailbox, both axes logarithmic, as SVG text."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1150, 470
PANEL = {"send": (70, 330), "look": (640, 330)}  # left edge, width; behind each is room for labels
TOP, BOTTOM = 70, 390
LABEL_STEP = 16
SIZES = (1, 1000, 10000, 100000)

# name and way: class of the colour; ours is the first, twice
SERIES = {
    ("mailroom", "command"): "ours",
    ("mailroom, all unread", "command"): "unread",
    ("libmailroom", "open"): "library",
    ("mblaze", "command"): "mblaze",
    ("sqlite3, WAL", "command"): "sqlite",
    ("SQLite, WAL", "open"): "sqlite",
    ("shell mailbox", "open"): "shell",
    ("team inbox, Node", "open"): "teams",
}

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 15px; }
.small { fill: #57606a; font-size: 12px; }
.page { fill: #ffffff; }
.grid { stroke: #d8dee4; stroke-width: 1; }
.axis { stroke: #8c959f; stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke: currentColor; }
.open { stroke-dasharray: 6 4; }
.dot { fill: currentColor; }
.bold { stroke-width: 3.5; }
text.bold { font-weight: 600; }
.label { fill: currentColor; }
.ours { color: #0550ae; }
.library { color: #0550ae; }
.unread { color: #54aeff; }
.mblaze { color: #9a6700; }
.sqlite { color: #1a7f37; }
.shell { color: #8250df; }
.teams { color: #cf222e; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .page { fill: #0d1117; }
  .grid { stroke: #2a313c; }
  .axis { stroke: #656c76; }
  .label { fill: currentColor; }
  .ours { color: #79c0ff; }
  .library { color: #79c0ff; }
  .unread { color: #388bfd; }
  .mblaze { color: #e3b341; }
  .sqlite { color: #56d364; }
  .shell { color: #d2a8ff; }
  .teams { color: #ff7b72; }
}
"""


class Scale:
    """From figures to places on the page."""

    def __init__(self, left, width, low, high):
        self.left, self.width = left, width
        self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))

    def x(self, held):
        return self.left + self.width * math.log10(held) / math.log10(SIZES[-1])

    def y(self, us):
        share = (math.log10(us) - self.low) / (self.high - self.low)
        return BOTTOM - (BOTTOM - TOP) * share


def unit(us):
    return f"{us / 1e6:g} s" if us >= 1e6 else f"{us / 1e3:g} ms" if us >= 1e3 else f"{us:g} µs"


def axes(scale, title, out):
    right = scale.left + scale.width
    out.append(f'<text class="title" x="{scale.left}" y="{TOP - 22}">{escape(title)}</text>')
    for power in range(scale.low, scale.high + 1):
        y = scale.y(10**power)
        out.append(f'<line class="grid" x1="{scale.left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        out.append(f'<text class="small" x="{scale.left - 8}" y="{y + 4:.1f}" text-anchor="end">{unit(10**power)}</text>')
    for held in (1, 10, 100, 1000, 10000, 100000):
        x = scale.x(held)
        out.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}"/>')
        out.append(f'<text class="small" x="{x:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{held:,}</text>')
    out.append(f'<path class="axis" fill="none" d="M{scale.left} {TOP}V{BOTTOM}H{right}"/>')
    out.append(f'<text class="small" x="{(scale.left + right) / 2}" y="{BOTTOM + 42}" text-anchor="middle">'
               "messages in the mailbox</text>")


def spread(wanted):
    """Labels where their lines end, moved apart where they would lie on each other."""
    places = []
    for key, y in sorted(wanted.items(), key=lambda item: item[1]):
        places.append([key, max(y, places[-1][1] + LABEL_STEP) if places else y])
    over = places[-1][1] - BOTTOM if places else 0
    if over > 0:
        for i in range(len(places) - 1, -1, -1):
            limit = BOTTOM if i == len(places) - 1 else places[i + 1][1] - LABEL_STEP
            places[i][1] = min(places[i][1], limit)
    return dict(places)


def panel(rows, what, title, bounds, out):
    left, width = PANEL[what]
    scale = Scale(left, width, *bounds)
    lines, ends = {}, {}

    axes(scale, title, out)
    for key in SERIES:
        points = sorted((r["held"], r["us"]) for r in rows if (r["name"], r["how"]) == key and r["what"] == what)
        if points:
            lines[key] = [(scale.x(held), scale.y(us)) for held, us in points]
            ends[key] = lines[key][-1][1]
    places = spread(ends)
    for key, points in lines.items():
        colour, (name, how) = SERIES[key], key
        bold = " bold" if colour in ("ours", "library") else ""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        label_x = left + width + 14
        out.append(f'<g class="{colour}"><path class="line{" open" if how == "open" else ""}{bold}" d="{path}"/>')
        out.extend(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points)
        out.append(f'<path class="line" style="stroke-width:1;opacity:.45" '
                   f'd="M{points[-1][0]:.1f} {points[-1][1]:.1f}L{label_x - 3} {places[key]:.1f}"/>')
        out.append(f'<text class="label{bold}" x="{label_x}" y="{places[key] + 4:.1f}">{escape(name)}</text></g>')


def plot(rows):
    rows = [r for r in rows if r["us"] > 0]
    bounds = min(r["us"] for r in rows), max(r["us"] for r in rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'role="img" aria-label="Cost of a send and of a look against the size of the mailbox">',
           f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="6"/>']
    panel(rows, "send", "one send of 1 KB", bounds, out)
    panel(rows, "look", "one look for mail, 10 unread", bounds, out)
    out.append(f'<text class="small" x="{PANEL["send"][0]}" y="{HEIGHT - 12}">solid: a command is started each time; dashed: '
               "with an open handle. Medians; both axes are logarithmic. Who syncs what is in BENCHMARKS.md.</text>")
    out.append("</svg>\n")
    return "\n".join(out)
