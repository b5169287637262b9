#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wire.py - a wire that is cut at a byte. Between the command and its server is a proxy that passes on so many bytes of the first connection, in
one direction, and then closes it, or falls silent and keeps it open; later connections pass whole. Whatever is cut, a send is accepted once, refused and nowhere, or in doubt and
resolved by the next command; a claim is the caller's or nobody's. At every byte with MAILROOM_TEST_LONG, else at some of them in each
direction. MAILROOM is the room behind the proxy without its host; PG the folder of the server's socket, PROXY that of the proxy's. Prints TAP."""
import json, os, socket, subprocess, sys, threading

BIN, PG, PROXY = os.environ["BIN"], os.environ["PG"], os.environ["PROXY"]
LONG = bool(os.environ.get("MAILROOM_TEST_LONG"))

class Wire:
    """cut: (direction, bytes) of the first connection; None: none is cut. silent: it is not closed there, and nothing passes any more. counts: what
    passed of the first, by direction."""
    def __init__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(PROXY + "/.s.PGSQL.5432")
        self.listener.listen(50)
        self.reset(None)
        threading.Thread(target=self.accept, daemon=True).start()

    def reset(self, cut, silent=False):
        self.cut, self.silent, self.first, self.counts = cut, silent, True, [0, 0]

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(PG + "/.s.PGSQL.5432")
            mine, self.first = self.first, False
            for direction, (a, b) in enumerate(((client, server), (server, client))):
                threading.Thread(target=self.pump, args=(a, b, direction, mine, self.cut, self.counts), daemon=True).start()

    def pump(self, a, b, direction, mine, cut, counts):
        limit = cut[1] if mine and cut and cut[0] == direction else None
        passed = 0
        try:
            while True:
                data = a.recv(65536)
                if limit is not None and passed + len(data) >= limit:
                    b.sendall(data[:limit - passed])
                    while self.silent and mine and data:
                        data = a.recv(65536)
                    break
                if not data:
                    break
                passed += len(data)
                if mine:
                    counts[direction] = passed
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

def run(*words):
    return subprocess.run([BIN, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)

def sql(text):
    return subprocess.run(["psql", "-qAtX", "-h", PG, "-U", "mailroom", "-d", "postgres", "-c", text], capture_output=True, text=True, check=True).stdout.split("\n")

def cuts(totals, some):
    for direction in (0, 1):
        step = 1 if LONG else max(1, totals[direction] // some)
        for at in range(1, totals[direction] + 1, step):
            yield direction, at

def main():
    schema, wire, n, bad = os.environ["SCHEMA"], Wire(), 0, 0
    def tell(good, words):
        nonlocal n, bad
        n, bad = n + 1, bad + (not good)
        print("%s %d - %s" % ("ok" if good else "not ok", n, words), flush=True)
    # ---- sends
    run("--as", "alice", "send", "bob", "-s", "count", "-m", "x")
    wire.reset(None)
    run("--as", "alice", "send", "bob", "-s", "count", "-m", "x")
    totals, told, away = list(wire.counts), {}, 0
    for cut in cuts(totals, 20):
        wire.reset(cut)
        done = run("--as", "alice", "send", "bob", "-s", "cut %d %d" % cut, "-m", "x")
        told["cut %d %d" % cut] = done.returncode
        away += "was away" in done.stderr
        if done.returncode not in (0, 1, 6):
            print("# %s: exit %d: %s" % (cut, done.returncode, done.stderr))
    wire.reset(None)
    run("--as", "alice", "check")
    there = sql("SELECT substring(convert_from(m.head, 'UTF8') from 'Subject: ([^\r\n]*)') FROM %s.message m JOIN %s.inbox i USING (id)" % (schema, schema))
    wrong = ["%s: exit %d, there %d" % (what, code, there.count(what)) for what, code in told.items() if there.count(what) != (1 if code in (0, 6) else 0) or code not in (0, 1, 6)]
    for line in wrong[:20]:
        print("# " + line)
    tell(totals[0] > 200 and totals[1] > 200, "a send is %d bytes there and %d back" % tuple(totals))
    tell(not wrong, "of %d sends, each cut elsewhere, %d were accepted, %d in doubt, %d failed: all are there once, or not at all" % (
        len(told), list(told.values()).count(0), list(told.values()).count(6), list(told.values()).count(1)))
    tell(away > 3 and list(told.values()).count(0) > len(told) // 2, "most were accepted, on a new connection; %d had asked already" % away)
    # ---- claims
    run("--as", "alice", "queue", "create", "work")
    batch = "".join(json.dumps({"to": "queue:work", "body": "w%d" % i}) + "\n" for i in range(400 if not LONG else 8000))
    subprocess.run([BIN, "--as", "alice", "send", "--batch"], input=batch, capture_output=True, text=True)
    wire.reset(None)
    first = run("--as", "bob", "recv", "queue:work", "--json")
    totals, tokens, codes = list(wire.counts), [json.loads(first.stdout)["token"]], []
    empty = nameless = 0
    for i, cut in enumerate(cuts(totals, 12)):
        # a server that is silent before the room is open is waited for 15 s: once
        wire.reset(cut, silent=i == 3 or (i % 4 == 3 and (LONG or cut[1] > totals[cut[0]] * 0.6)))
        done = run("--as", "bob", "recv", "queue:work", "--json", *(("--wait", "1s") if i % 2 else ()))
        codes.append(done.returncode)
        nameless += done.returncode == 1 and "no answer" not in done.stderr
        empty += done.returncode == 0 and not done.stdout.strip()
        if done.returncode == 0 and done.stdout.strip():
            tokens.append(json.loads(done.stdout)["token"])
    tell(not empty, "no claim exits 0 and shows nothing")
    tell(not nameless, "one that fails says that no answer came")
    held = sql("SELECT token FROM %s.claim" % schema)[:-1]
    tell(len(set(tokens)) == len(tokens) and set(tokens) <= set(held), "of %d claims, each cut elsewhere, %d were told, and all of these hold" % (len(codes) + 1, len(tokens)))
    tell(len(held) - len(tokens) <= sum(c != 0 for c in codes), "no claim that was told holds two pieces of work")
    ended = []
    for i, token in enumerate(tokens[:8] if not LONG else tokens):
        wire.reset((i % 2, 1 + (i * 997) % totals[i % 2]))
        ended.append(run("--as", "bob", "done", token).returncode)
    wire.reset(None)
    finished = int(sql("SELECT count(*) FROM %s.finished" % schema)[0])
    tell(ended.count(0) <= finished <= len(ended) and set(ended) <= {0, 1, 6}, "of %d that were done, each cut elsewhere, %d were told so and %d are" % (len(ended), ended.count(0), finished))
    # ---- mail of one's own: exit 0 is a message that was shown, and held
    while run("--as", "bob", "drain", "--json").stdout.strip():
        pass
    batch = "".join(json.dumps({"to": "bob", "body": "own %d" % i}) + "\n" for i in range(60 if not LONG else 20000))
    subprocess.run([BIN, "--as", "alice", "send", "--batch"], input=batch, capture_output=True, text=True)
    wire.reset(None)
    run("--as", "bob", "recv", "--json")
    totals, tokens, codes, wrong = list(wire.counts), [], [], []
    for i, cut in enumerate(cuts(totals, 12)):
        wire.reset(cut, silent=i % 6 == 5)
        done = run("--as", "bob", "recv", *(("--json",) if i % 2 else ()), *(("--wait", "1s") if i % 3 else ()))
        codes.append(done.returncode)
        text = done.stdout
        token = json.loads(text)["token"] if text.startswith("{") else text.split()[1] if text.startswith("token ") else None
        if (done.returncode == 0) != (token is not None and "own " in text):
            wrong.append("%s: exit %d: %s" % (cut, done.returncode, text[:200]))
        tokens += [token] if token else []
    for line in wrong[:20]:
        print("# " + line)
    held = sql("SELECT token FROM %s.inbox WHERE kind = 'l'" % schema)[:-1]
    tell(not wrong and set(codes) <= {0, 1, 3, 6}, "of %d recv of own mail, each cut elsewhere, %d exit 0, and these show a message" % (len(codes), codes.count(0)))
    tell(len(set(tokens)) == len(tokens) and set(tokens) <= set(held), "and hold it")
    # ---- patrols: what is handled is noted, and runs no second time
    handler = PROXY + "/handler"
    with open(handler, "w") as f:
        f.write("#!/bin/sh\necho $MAILROOM_ID >>'%s/runs'\n" % PROXY)
    os.chmod(handler, 0o755)
    patrol = ("--as", "carol", "patrol", "--handler", "HELP=" + handler)
    run("register", "carol")
    wrong, twice, ids = [], 0, []
    def mail():
        ids.append(run("--as", "alice", "send", "carol", "-s", "HELP: me", "-m", "x").stdout.strip())
    mail()
    wire.reset(None)
    run(*patrol)
    for cut in cuts(list(wire.counts), 12):
        mail()
        wire.reset(cut)
        done = run(*patrol)
        wire.reset(None)
        again = run(*patrol)
        runs = open(PROXY + "/runs").read().split().count(ids[-1])
        twice += runs > 1
        acked = json.loads(run("--as", "carol", "read", ids[-1], "--json").stdout)["acked"]
        if runs not in (1, 2) or not acked or (runs > 1 and "handled" in done.stdout):
            wrong.append("%s: exit %d, then %d; ran %d times, acknowledged %s: %s%s" % (cut, done.returncode, again.returncode, runs, acked, done.stdout, done.stderr))
    for line in wrong[:20]:
        print("# " + line)
    tell(not wrong, "%d patrols, each cut elsewhere: all was handled, and nothing again that was told; %d ran twice" % (len(ids), twice))
    print("1..%d" % n)
    return 1 if bad else 0

if __name__ == "__main__":
    sys.exit(main())
