# SPDX-License-Identifier: MIT
# elements.py PATH <page - prints every element and attribute that no page of ours has: what mail could have brought in.
import sys
from html.parser import HTMLParser

OURS = {"html", "head", "meta", "title", "link", "script", "body", "a", "div", "small", "nav", "ul", "ol", "li", "span", "p", "main", "h1", "h2", "h3", "b",
        "time", "form", "input", "button", "code", "pre", "article", "header", "section", "details", "summary", "label", "select", "option", "textarea",
        "table", "thead", "tbody", "tr", "th", "td", "bdi", "mark", "svg", "g", "path", "rect", "line", "circle", "text", "tspan", "title", "desc",
        "polyline", "polygon", "defs", "marker"}


class Look(HTMLParser):
    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag not in OURS or (tag == "script" and values.get("src") != "/script.js"):
            print(f"{sys.argv[1]}: <{tag} {values}>")
        for name, value in attrs:
            if name.startswith("on") or name == "style" or (name in ("href", "src", "action") and not (value or "").startswith(("/", "#"))):
                print(f"{sys.argv[1]}: {tag} {name}={value}")


Look().feed(sys.stdin.read())
