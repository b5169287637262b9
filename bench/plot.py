# SPDX-License-Identifier: MIT
"""plot.py - panels of cost against size, both axes logarithmic, as SVG text: a send and a look, and commands that read a history."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1150, 470
LEFT, RIGHT, PANEL_WIDTH = 70, 640, 330  # edges of the panels; behind each is room for labels
TOP, BOTTOM = 70, 390
LABEL_STEP = 16

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

    def __init__(self, left, points):
        self.left = left
        self.low, self.high = (edge(math.log10(us)) for edge, us in
                               ((math.floor, min(y for _, y in points)), (math.ceil, max(y for _, y in points))))
        self.least, self.most = (math.log10(pick(x for x, _ in points)) for pick in (min, max))

    def x(self, held):
        return self.left + PANEL_WIDTH * (math.log10(held) - self.least) / (self.most - self.least)

    def y(self, us):
        share = (math.log10(us) - self.low) / (self.high - self.low)
        return BOTTOM - (BOTTOM - TOP) * share


def unit(us):
    return f"{us / 1e6:g} s" if us >= 1e6 else f"{us / 1e3:g} ms" if us >= 1e3 else f"{us:g} µs"


def axes(scale, title, along, out):
    right = scale.left + PANEL_WIDTH
    out.append(f'<text class="title" x="{scale.left}" y="{TOP - 22}">{escape(title)}</text>')
    for power in range(scale.low, scale.high + 1):
        y = scale.y(10**power)
        out.append(f'<line class="grid" x1="{scale.left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        out.append(f'<text class="small" x="{scale.left - 8}" y="{y + 4:.1f}" text-anchor="end">{unit(10**power)}</text>')
    for power in range(math.ceil(scale.least), math.floor(scale.most) + 1):
        x = scale.x(10**power)
        out.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}"/>')
        out.append(f'<text class="small" x="{x:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{10**power:,}</text>')
    out.append(f'<path class="axis" fill="none" d="M{scale.left} {TOP}V{BOTTOM}H{right}"/>')
    out.append(f'<text class="small" x="{(scale.left + right) / 2}" y="{BOTTOM + 42}" text-anchor="middle">{along}</text>')


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


def panel(lines, title, along, left, bounds, out):
    """lines: label -> (class, dashed, points); bounds: points that all panels of the page have room for."""
    scale = Scale(left, [p for _, _, points in lines.values() for p in points] + bounds)
    places = spread({label: scale.y(points[-1][1]) for label, (_, _, points) in lines.items()})

    axes(scale, title, along, out)
    for label, (colour, dashed, points) in lines.items():
        bold = " bold" if colour in ("ours", "library") else ""
        spots = [(scale.x(held), scale.y(us)) for held, us in points]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        label_x = left + PANEL_WIDTH + 14
        out.append(f'<g class="{colour}"><path class="line{" open" if dashed else ""}{bold}" d="{path}"/>')
        out.extend(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in spots)
        out.append(f'<path class="line" style="stroke-width:1;opacity:.45" '
                   f'd="M{spots[-1][0]:.1f} {spots[-1][1]:.1f}L{label_x - 3} {places[label]:.1f}"/>')
        out.append(f'<text class="label{bold}" x="{label_x}" y="{places[label] + 4:.1f}">{escape(label)}</text></g>')


def page(title, panels, note, bounds=()):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           f'role="img" aria-label="{escape(title)}">',
           f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="6"/>']
    for left, (lines, head, along) in zip((LEFT, RIGHT), panels):
        if lines:
            panel(lines, head, along, left, list(bounds), out)
    out.append(f'<text class="small" x="{LEFT}" y="{HEIGHT - 12}">{escape(note)}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def plot(rows):
    rows = [r for r in rows if r["us"] > 0]
    bounds = [(r["held"], r["us"]) for r in rows]

    def lines(what):
        found = {}
        for (name, how), colour in SERIES.items():
            points = sorted((r["held"], r["us"]) for r in rows if (r["name"], r["how"], r["what"]) == (name, how, what))
            if points:
                found[name] = (colour, how == "open", points)
        return found

    return page("Cost of a send and of a look against the size of the mailbox",
                [(lines("send"), "one send of 1 KB", "messages in the mailbox"),
                 (lines("look"), "one look for mail, 10 unread", "messages in the mailbox")],
                "solid: a command is started each time; dashed: with an open handle. Medians; both axes are logarithmic. "
                "BENCHMARKS.md says which of them sync.", bounds)


GROWTH_COLOURS = {"notmuch": "shell", "mblaze": "mblaze", "sqlite3": "sqlite"}


def plot_growth(rows):
    def lines(of):
        found = {}
        for name, by in dict.fromkeys((r["name"], r["by"]) for r in rows if r["of"] == of):
            points = sorted((r["n"], r["us"]) for r in rows if (r["name"], r["by"]) == (name, by))
            ours = by == "mailroom"
            found[name if ours else f"{name}, {by}"] = ("ours" if ours else GROWTH_COLOURS[by], not ours, points)
        return found

    return page("Cost of commands against the history of a room",
                [(lines("messages"), "commands that read a history", "messages in the room"),
                 (lines("agents"), "commands that read the agents", "agents in the room")],
                "solid: mailroom; dashed: others with the same mail, with their index. A command is started each time. "
                "Medians; both axes are logarithmic.")
