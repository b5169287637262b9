#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""campaign.py [ROUNDS] - a room on two servers (cluster.py), real commands that write, claim, wait and look, and one primary after the other
that dies under them. check.py judges what they were told. Then the controls: the same with a server, a client or an operator that does it
wrong, and each must be caught. Prints TAP; needs root; everything is in namespaces of its own. KEEP=FOLDER keeps the histories.

16 senders (12 batches on open connections, 4 that run a command for each message), 8 claimers (4 MCP servers, 4 by commands), 4 that wait,
2 that look for what was just acknowledged. They run as two machines: half of them with one state folder, half with another.
"""
import itertools, json, os, random, shutil, subprocess, sys, tempfile, threading, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check, cluster

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("DEVBIN", TOP + "/build/dev/mailroom"))
BIN = BIN + "-full" if os.path.exists(BIN + "-full") else BIN  # what the command would become anyhow
now = time.monotonic

CREW = {"batch_sender": 12, "command_sender": 4, "mcp_claimer": 4, "command_claimer": 4, "waiter": 4, "looker": 2}

class Storm:
    """The workers of one campaign, and their histories."""
    def __init__(self, c, folder, schema, crew=CREW, blind_retry=False, no_memory=False):
        self.c, self.folder, self.schema, self.crew = c, folder, schema, crew
        self.blind_retry, self.no_memory = blind_retry, no_memory
        self.ending, self.threads, self.newest, self.fresh = threading.Event(), [], {}, itertools.count()
        self.done = self.looks = 0  # calls, to see that they go on
        os.makedirs(folder)
        self.spec = c.spec(schema)

    def env(self, machine):
        state = "%s/state%d" % (self.folder, machine)
        if self.no_memory:  # every command is a new machine's
            state = "%s/state-%d" % (self.folder, next(self.fresh))
        return dict(os.environ, MAILROOM=self.spec, XDG_STATE_HOME=state, XDG_CONFIG_HOME=self.folder + "/config", HOME=self.folder,
            MAILROOM_DATA=TOP + "/share/mailroom", LC_ALL="C.UTF-8")

    def command(self, machine, *words, spec=None):
        env = dict(self.env(machine), MAILROOM=spec or self.spec)
        return subprocess.run([BIN, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, timeout=120)

    def must(self, *words):
        done = self.command(0, *words)
        if done.returncode:
            raise RuntimeError("mailroom %s: %s" % (" ".join(words), done.stderr))
        return done.stdout

    def make(self, patience):
        self.must("init", self.spec, "--name", "town")
        self.c.primary.sql("UPDATE %s.room SET settings = settings || 'Reconnect: %ds' || chr(10)" % (self.schema, patience))
        for name in ["s", "c", "r0", "r1", "w0", "w1", "w2", "w3"]:
            self.must("register", name)
        self.must("--as", "s", "queue", "create", "work")

    # ---- workers: each writes down every call with what it was told
    def start(self):
        for kind, many in self.crew.items():
            for n in range(many):
                self.worker("%s%d" % (kind, n), getattr(self, kind), n)

    def worker(self, name, body, n):
        def run():
            with open("%s/%s.jsonl" % (self.folder, name), "w") as file:
                def note(op, t0, rc, **more):
                    file.write(json.dumps(dict(more, op=op, who=name, t0=round(t0, 4), t1=round(now(), 4), rc=rc)) + "\n")
                    file.flush()
                    self.done += 1
                try:
                    body(name, n, note)
                except Exception as e:  # a broken worker is a broken test
                    if not self.ending.is_set():
                        note("wait", now(), "failed", why=repr(e))
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.threads.append(thread)

    def target(self, serial, n):
        return "queue:work" if serial % 3 == 0 else "w%d" % (n % 4) if serial % 10 == 1 else "r%d" % (n % 2)

    def sent(self, note, t0, what, to, rc, id, away):
        note("send", t0, rc, what=what, to=to, id=id, away=away)
        if rc == "ok" and to[0] == "r":
            self.newest[to] = id

    def batch_sender(self, name, n, note):
        p = subprocess.Popen([BIN, "--as", "s", "send", "--batch", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=self.env(n % 2))
        for serial in itertools.count():
            if self.ending.is_set():
                break
            what, to, t0 = "%s-%d" % (name, serial), self.target(serial, n), now()
            p.stdin.write(json.dumps({"to": to, "subject": what, "body": what}) + "\n")
            p.stdin.flush()
            answer = json.loads(p.stdout.readline())
            error = answer.get("error", {})
            rc = "ok" if "id" in answer and not error else "doubt" if error.get("code") == "in-doubt" else "failed"
            self.sent(note, t0, what, to, rc, answer.get("id"), "was away" in json.dumps(answer))
            if rc == "doubt" and self.blind_retry:
                self.one(name, n, note, what, to)
            time.sleep(0.1)
        p.stdin.close()
        p.wait()

    def one(self, name, n, note, what, to):
        t0 = now()
        done = self.command(n % 2, "--as", "s", "send", to, "-s", what, "-m", what)
        rc = {0: "ok", 6: "doubt"}.get(done.returncode, "failed")
        self.sent(note, t0, what, to, rc, done.stdout.strip()[-26:], "was away" in done.stderr)
        return rc

    def command_sender(self, name, n, note):
        for serial in itertools.count():
            if self.ending.is_set():
                break
            what, to = "%s-%d" % (name, serial), self.target(serial, n)
            if self.one(name, n, note, what, to) == "doubt" and self.blind_retry:
                self.one(name, n, note, what, to)
            time.sleep(0.2)

    def mcp_claimer(self, name, n, note):
        p = subprocess.Popen([BIN, "--as", "c", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.env(n % 2))
        numbers = itertools.count(1)
        def ask(method, params):
            number = next(numbers)
            p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            p.stdin.flush()
            for line in p.stdout:
                answer = json.loads(line)
                if answer.get("id") == number:
                    return answer
            raise RuntimeError("the MCP server ended")
        def rc_of(answer):
            result = answer.get("result", {})
            text = json.dumps(answer)
            if not result.get("isError", "error" in answer):
                return "ok"
            return "doubt" if "it is not known whether" in text else "over" if "is over" in text else "failed"
        ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        while not self.ending.is_set():
            t0 = now()
            answer = ask("tools/call", {"name": "recv", "arguments": {"queue": "work", "lease": "3h"}})
            got = answer.get("result", {}).get("structuredContent", {})
            rc = rc_of(answer)
            note("claim", t0, rc if rc != "ok" or "token" in got else "empty", id=got.get("id"), token=got.get("token"), away="was away" in json.dumps(answer))
            if rc == "ok" and "token" in got:
                t0 = now()
                answer = ask("tools/call", {"name": "done", "arguments": {"token": got["token"]}})
                note("done", t0, rc_of(answer), id=got["id"], token=got["token"], away="was away" in json.dumps(answer))
            time.sleep(0.2)
        p.stdin.close()
        p.wait()

    def command_claimer(self, name, n, note):
        while not self.ending.is_set():
            t0 = now()
            done = self.command(n % 2, "--as", "c", "recv", "queue:work", "--lease", "3h", "--wait", "1s", "--json")
            got = json.loads(done.stdout) if done.returncode == 0 else {}
            note("claim", t0, {0: "ok", 3: "empty", 6: "doubt"}.get(done.returncode, "failed"), id=got.get("id"), token=got.get("token"), away="was away" in done.stderr)
            if got:
                t0 = now()
                done = self.command(n % 2, "--as", "c", "done", got["token"])
                note("done", t0, {0: "ok", 5: "over", 6: "doubt"}.get(done.returncode, "failed"), id=got["id"], token=got["token"], away="was away" in done.stderr)

    def waiter(self, name, n, note):
        while not self.ending.is_set():
            t0 = now()
            done = self.command(n % 2, "--as", "w%d" % n, "wait", "--timeout", "20s", "--json")
            away = done.returncode == 1 and '"code":"io"' in done.stderr  # no server for longer than the room's patience: it says so
            note("wait", t0, {0: "ok", 3: "timeout"}.get(done.returncode, "away" if away else "failed"), why=done.stderr[-300:] if done.returncode not in (0, 3) else "")
            self.command(n % 2, "--as", "w%d" % n, "archive", *[json.loads(line)["id"] for line in done.stdout.splitlines() if '"id"' in line][:20])
            time.sleep(0.1)

    def looker(self, name, n, note):
        while not self.ending.is_set():
            agent = random.choice(["r0", "r1"])
            id, t0 = self.newest.get(agent), now()
            if id:  # under a new name of the room each time, the hosts in any order: only what is known of the room itself helps
                spec = self.c.spec(self.schema, "&application_name=look%d" % next(self.fresh), random.choice((True, False)))
                done = self.command(n % 2, "--as", agent, "read", "--peek", id, spec=spec)
                note("look", t0, {0: "there", 5: "missing"}.get(done.returncode, "failed"), id=id, why=done.stderr[-200:] if done.returncode else "")
                self.looks += 1
            time.sleep(0.1)

    # ---- the end
    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join(120)
        stuck = [t for t in self.threads if t.is_alive()]
        if stuck:
            raise RuntimeError("%d workers do not end" % len(stuck))
        for machine in (0, 1):  # the next command that reaches the room sends what was in doubt
            self.command(machine, "--as", "s", "check")
        rows = self.c.primary.sql("""SET search_path = %s; SELECT json_build_object('op', 'there', 'id', m.id, 'what', substring(convert_from(m.head, 'UTF8') from 'Subject: ([^\r\n]*)'),
            'place', x.place, 'state', x.state, 'token', x.token, 't0', 0, 't1', 0, 'rc', '') FROM message m JOIN (
            SELECT id, 'inbox' AS place, NULL AS state, NULL AS token FROM inbox UNION ALL SELECT id, 'archive', NULL, NULL FROM archive UNION ALL
            SELECT id, 'queue:work', 'ready', NULL FROM ready UNION ALL SELECT id, 'queue:work', 'claimed', token FROM claim UNION ALL
            SELECT id, 'queue:work', 'done', NULL FROM finished) x ON x.id = m.id""" % self.schema, 60)
        with open(self.folder + "/there.jsonl", "w") as file:
            file.write(rows + "\n" if rows else "")

    def flows(self, calls=30, seconds=60):
        """The workers get answers again."""
        goal = self.done + calls
        cluster.until("%d answers" % calls, lambda: self.done >= goal, seconds)

def turn(c, storm, kind, rounds, patience):
    """One primary ends, another begins, the old one comes back as its standby."""
    t0 = now()
    if kind in ("standby", "late"):  # what it accepts from now on, nobody else has; then it dies
        c.cut_replication()
        time.sleep(0.7)
        c.primary.kill()
        if kind == "late":  # and none is there for longer than commands wait
            time.sleep(patience + 1)
    else:  # the standby is slow, so that some sends are under way
        c.standby.freeze(True)
        time.sleep(0.3)
        if kind == "kill":
            c.primary.kill()
        else:  # cable, unfenced: it lives on, and nobody can reach it
            c.primary.cable(False)
        c.standby.freeze(False)
    c.promote()
    if kind == "unfenced":
        # The operator lets the new one accept mail alone, and nobody ended the old one: its cable is back, both can be written to, and what
        # the old one shows is old.
        c.primary.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        c.primary.sql("SELECT pg_reload_conf()")
        for machine in (0, 1):
            storm.command(machine, "--as", "s", "check")
        storm.flows(10)
        c.standby.cable(True)
        time.sleep(0.5)
        looks = storm.looks
        cluster.until("some looks", lambda: storm.looks >= looks + 10, 60)
        c.primary.sql("ALTER SYSTEM RESET synchronous_standby_names")
        c.primary.sql("SELECT pg_reload_conf()")
    c.rejoin()
    storm.flows(10)
    rounds.write(json.dumps({"op": "round", "kind": kind, "t0": round(t0, 4), "t1": round(now(), 4), "rc": ""}) + "\n")
    rounds.flush()

def campaign(c, folder, schema, kinds, patience=3, settle=0.7, before=None, **how):
    storm = Storm(c, folder, schema, **how)
    storm.make(patience)
    if before:
        before(storm)
    storm.start()
    storm.flows(len(storm.threads))
    with open(folder + "/rounds.jsonl", "w") as rounds:
        for kind in kinds:
            time.sleep(settle)
            turn(c, storm, kind, rounds, patience)
    storm.stop()
    return check.judge(check.read(folder))

def asynchronous(storm):
    """A server that does not wait: what overrules a lowered synchronous_commit lowers it."""
    s = storm.schema
    storm.c.primary.sql("""DO $do$ DECLARE f record; BEGIN
        FOR f IN SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE pronamespace = '%s'::regnamespace AND prosrc LIKE '%%synchronous_commit%%''on''%%' LOOP
            EXECUTE replace(replace(f.text, 'IF current_setting(''synchronous_commit'') IN (''off'', ''local'') THEN', 'IF true THEN'),
                'set_config(''synchronous_commit'', ''on'', true)', 'set_config(''synchronous_commit'', ''off'', true)');
        END LOOP; END $do$""" % s)

def holds(c, folder):
    """What is held outlives a failover, although no server could be asked to extend it and the locks of all sessions are gone: a lease that ran out
    meanwhile, and a message that a command is just showing. Yields (good, words)."""
    storm = Storm(c, folder, "holds", crew={})
    storm.make(3)
    storm.must("--as", "s", "send", "queue:work", "-m", "work")
    storm.must("--as", "s", "send", "r0", "-s", "shown", "-m", "x" * 100000)
    token = json.loads(storm.must("--as", "c", "recv", "queue:work", "--lease", "2s", "--json"))["token"]
    leased = now()
    reader = subprocess.Popen([BIN, "--as", "r0", "drain", "--budget", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=storm.env(0))
    held = lambda: c.primary.sql("SELECT count(*) FROM holds.inbox WHERE kind = 'p'")
    cluster.until("a message that is shown", lambda: held() == "1")  # its text does not fit into the pipe: the command waits
    time.sleep(1)  # no command waits for the standby to have such a hold; one that dies within a moment may show a message twice
    c.primary.kill()
    c.promote()
    c.rejoin()
    time.sleep(max(0, leased + 2.5 - now()))
    other = storm.command(1, "--as", "s", "recv", "queue:work")
    yield other.returncode == 3, "a lease that ran out during a failover is its holder's for a while"
    again = storm.command(1, "--as", "r0", "drain")
    yield "no unread mail" in again.stdout, "a message that is being shown is shown to no other"
    yield storm.command(0, "--as", "c", "done", token).returncode == 0, "the holder of the lease ends its work"
    text, said = reader.communicate(timeout=60)
    yield reader.returncode == 0 and len(text) > 100000, "the command that shows goes on"
    yield held() == "0" and c.primary.sql("SELECT count(*) FROM holds.inbox WHERE flags & 1 = 0") == "0", "and marks what it showed"

def main():
    sys.stdout.reconfigure(line_buffering=True)
    why = os.environ.get("FAILOVER_INSIDE") is None and cluster.why_not()
    if why:
        print("ok 1 - failover # skip %s\n1..1" % why)
        return 0
    cluster.isolate()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    folder = tempfile.mkdtemp(prefix="mailroom-failover.", dir=os.environ.get("TMPDIR"))
    bad, n = 0, 0
    def report(good, words, found):
        nonlocal bad, n
        n, bad = n + 1, bad + (not good)
        wrong, figures = found
        if figures:
            print("# " + "; ".join("%s %s" % f for f in figures))
        for kind, what in sorted(wrong.items()):
            print("# %s: %d, such as %s" % (kind, len(what), json.dumps(what[0])[:300]))
        print("%s %d - %s" % ("ok" if good else "not ok", n, words), flush=True)
    try:
        c = cluster.Cluster(folder)
        kinds = list(itertools.islice(itertools.cycle(["unfenced", "late", "kill", "standby", "cable"]), rounds))
        found = campaign(c, folder + "/right", "town", kinds)
        report(not found[0], "%d rounds: nothing acknowledged is lost, doubled, held or done twice, and every doubt is resolved" % rounds, found)
        if c.primary is not c.a:  # the list of hosts begins with a: the old primary of the controls shall be the first of it
            c.primary.kill(); c.promote(); c.rejoin()
        found = campaign(c, folder + "/unfenced", "unfenced", ["unfenced"], crew={"batch_sender": 2, "looker": 2}, no_memory=True)
        report("acknowledged, and a later look did not find it" in found[0], "an old primary that nobody fenced and nobody remembers is caught", found)
        found = campaign(c, folder + "/async", "async", ["standby"], crew={"batch_sender": 4}, before=asynchronous, no_memory=True)
        report("acknowledged and lost" in found[0], "a server that does not wait for its standby is caught", found)
        found = campaign(c, folder + "/blind", "blind", ["late"], crew={"batch_sender": 4}, patience=1, blind_retry=True)
        report("doubled" in found[0], "a client that sends again what is in doubt is caught", found)
        for good, words in holds(c, folder + "/holds"):
            report(good, words, ({}, []))
    finally:
        keep = os.environ.get("KEEP")
        if keep:
            shutil.copytree(folder, keep, ignore=lambda d, names: [x for x in names if x == "data" or x.startswith(".s.")], dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    print("1..%d" % n)
    return 1 if bad else 0

if __name__ == "__main__":
    sys.exit(main())
