#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""index_room.py make ROOM COUNT SEED - fills the mailboxes of a room with random mail.
index_room.py compare BIN ROOM COUNT SEED - random questions, answered with and without the index; prints where they differ.

Words are few, so that questions find something; some mail is hostile: syntax of FTS5, NUL, bad UTF-8, one very long word."""
import glob
import os
import random
import re
import subprocess
import sys
import time

DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
AGENTS = ["alice", "bob", "town/carol"]
WORDS = ["build", "green", "red", "rebuild", "port", "8081", "a_b", "größe", "deploy", "NEAR", "OR", "AND", "NOT", "text", "x"]
HOSTILE = [b'NEAR("a" b) OR rest:* {sender rcpt}: ^x', b'"unclosed', b"a\0build\0b", b"\xff\xfe\xc3 \x80build", b"w" * 200000,
           b"'; DROP TABLE copy; --", b"build*green-red \"is green\" + ( )", "ß größe GRÖSSE".encode()]


def make_id(ms, rnd):
    n = (ms << 80) | rnd.getrandbits(80)
    return "".join(DIGITS[(n >> (5 * i)) & 31] for i in range(25, -1, -1))


def body(rnd):
    if rnd.random() < 0.05:
        return rnd.choice(HOSTILE)
    lines = [" ".join(rnd.choice(WORDS) for _ in range(rnd.randint(1, 6))) for _ in range(rnd.randint(1, 3))]
    return (rnd.choice(["\n", "\r\n"]).join(lines)).encode()


def put(room, agent, folder, ident, flags, text):
    name = "%d.%s.mr" % (decode_ms(ident) // 1000, ident)
    where = os.path.join(room, "agents", agent, folder)
    os.makedirs(where, mode=0o700, exist_ok=True)
    for part in ("new", "cur", "tmp"):
        if folder.startswith("."):
            os.makedirs(os.path.join(room, "agents", agent, folder.split("/")[0], part), mode=0o700, exist_ok=True)
    with open(os.path.join(where, name + flags), "wb") as f:
        f.write(text)


def decode_ms(ident):
    n = 0
    for c in ident[:10]:
        n = n * 32 + DIGITS.index(c)
    return n


def make(room, count, seed):
    rnd = random.Random(seed)
    now = int(time.time() * 1000)
    past = []  # (id, thread, sender)
    for _ in range(count):
        # several in one millisecond, some of today
        ms = now - rnd.choice([rnd.randint(0, 86400000), rnd.randint(0, 400 * 86400000), 5000000000]) - 60000
        ident = make_id(ms, rnd)
        if past and rnd.random() < 0.1:  # ends as another one does
            ident = ident[:-6] + rnd.choice(past)[0][-6:]
        sender = rnd.choice(AGENTS)
        to = rnd.sample(AGENTS, rnd.randint(1, 2))
        head = ["From: %s@r" % sender, "To: %s" % ", ".join("%s@r" % t for t in to), "Subject: %s" % " ".join(rnd.choice(WORDS) for _ in range(2)),
                "Date: %s" % time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(ms // 1000)), "Message-ID: <%s@r>" % ident]
        if rnd.random() < 0.2:
            head.append("Mailroom-Type: %s" % rnd.choice(["TASK", "NOTE"]))
        thread = ident
        if past and rnd.random() < 0.4:
            parent = rnd.choice(past[-50:])
            thread = parent[1]
            head += ["In-Reply-To: <%s@r>" % parent[0], "References: <%s@r>" % thread]
            head.append("Mailroom-Thread: %s" % thread)
        past.append((ident, thread, sender))
        text = ("\n".join(head) + "\n\n").encode() + body(rnd)
        month = time.strftime("%Y-%m", time.gmtime(ms // 1000))
        for t in to:
            place = rnd.random()
            if place < 0.1:
                put(room, t, "new", ident, "", text)
            elif place < 0.2:
                put(room, t, "cur", ident, ":2,%s" % rnd.choice(["", "S", "RS", "FS"]), text)
            else:
                put(room, t, ".Archive.%s/cur" % month, ident, ":2,%s" % rnd.choice(["S", "RS", "S", "FRS"]), text)
        put(room, sender, rnd.choice([".Sent", ".Sent." + month, ".Sent." + month]) + "/cur", ident, ":2,S", text)
    print("\n".join(p[0] for p in past))


def question(rnd, ids):
    kind = rnd.random()
    ident = rnd.choice(ids)
    if rnd.random() < 0.6:
        ident = ident[-rnd.choice([6, 6, 7, 20]):]
    if kind < 0.3:
        return ["thread", "--json", ident]
    if kind < 0.45:
        return ["why", "--json", ident]
    terms = []
    for _ in range(rnd.randint(1, 3)):
        w = rnd.choice(WORDS)
        terms.append(rnd.choice([w, w, w.upper(), w[:2] + "*", '"%s %s"' % (w, rnd.choice(WORDS)), "-" + w, "from:" + rnd.choice(AGENTS),
                                 "to:" + rnd.choice(AGENTS), "type:task", "after:%dd" % rnd.randint(0, 300), "before:%dd" % rnd.randint(0, 300),
                                 "-from:bob", "thread:" + rnd.choice(ids), 'NEAR(%s)' % w, "rest:" + w, "^" + w, w + "-" + rnd.choice(WORDS),
                                 "w" * rnd.choice([3, 64, 70, 200000 if rnd.random() < 0.02 else 65]), "www*"]))
    more = rnd.choice([[], [], [], ["--limit", "3"], ["--since", "100d"], ["--from", "alice"], ["--type", "TASK"], ["--regex", "gr.en"]])
    return ["search", "--json"] + more + ["--"] + [" ".join(terms)]


def run(cmd):
    done = subprocess.run(cmd, stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, re.sub(rb"last seen \S+ ago", b"", done.stdout)


def compare(binary, room, count, seed):
    rnd = random.Random(seed)
    ids = [n.split(".")[1] for a in AGENTS for top in glob.glob(os.path.join(room, "agents", a, ".Sent*", "cur")) for n in os.listdir(top)]
    bad = hits = 0
    for _ in range(count):
        q = question(rnd, sorted(ids))
        cmd = [binary, "--room", room, "--as", rnd.choice(AGENTS)] + q
        got = run(cmd)
        want = run(cmd[:6] + ["--no-index"] + cmd[6:])
        hits += want[1].count(b"\n")
        if got != want:
            bad += 1
            print("differs: %r: exit %d, %d lines; without the index %d, %d" % (
                q, got[0], got[1].count(b"\n"), want[0], want[1].count(b"\n")))
    print("%d questions, %s lines, %d differ" % (count, "some" if hits > count else "few", bad))


os.umask(0o077)
if sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    compare(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
