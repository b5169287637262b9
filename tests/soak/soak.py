#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""soak.py MESSAGES - months of a room with retention, in fast motion: does any folder grow for ever?

Every working day of the faked clock (MAILROOM_TEST_CLOCK_OFFSET_MS of a test build) sends, receives and finishes mail, keyed sends, work
of a queue, posts of a channel, nudges, questions, dead letters, escalations, beads that are given out again, mail to and from agents of a
linked room who live for a day, tokens, purges, and a session of a harness with its hooks; now and then a backlog comes and goes, and the
index is brought up to date. After DAYS of that the files of each folder of the room, of the linked room and of the state folder are
counted, after as many again once more: both phases are equal, so a folder that has more files, or larger ones, keeps something that nobody
removes. The folders themselves are measured, too. Prints TAP.
"""
import collections, json, os, re, shutil, subprocess, sys, tempfile

BIN = os.path.abspath(os.environ.get("DEVBIN", "build/dev/mailroom"))
MESSAGES = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
DAYS = 40                      # working days of a phase
STEP = 10                      # days from one to the next: a phase is longer than the longest time that something is kept (a year)
DAY_MS = 86400000
# A day has `bulk` plain messages and some 30 others.
bulk = max(5, MESSAGES // (2 * DAYS) - 30)

scratch = tempfile.mkdtemp(prefix="mailroom-soak.")
env = {"PATH": os.environ["PATH"], "HOME": scratch, "XDG_STATE_HOME": scratch + "/state", "XDG_CONFIG_HOME": scratch + "/config", "LC_ALL": "C.UTF-8",
       "MAILROOM_DATA": os.path.abspath(os.path.join(os.path.dirname(__file__), "../../share/mailroom"))}
os.chdir(scratch)
day = 0
sent = 0


def mr(*args, stdin="", fails=False, below=(), more={}):
    e = dict(env, MAILROOM_TEST_CLOCK_OFFSET_MS=str(int(day * DAY_MS)), **more)
    p = subprocess.run([*below, BIN, *args], input=stdin, env=e, capture_output=True, text=True)
    if p.returncode != 0 and not fails:
        print("Bail out! day %g: %s: exit %d: %s" % (day, " ".join(args), p.returncode, p.stderr.strip()))
        sys.exit(1)
    return p.stdout


def hook(event, session, **more):
    # A program that is no shell by its name stands for the harness, and ends with the hook.
    mr("hook", "claude-code", below=(scratch + "/claude", "-c", '"$@"; exit $?', "claude"), stdin=json.dumps(dict(session_id=session, transcript_path="/nowhere", cwd=scratch, hook_event_name=event, **more)))


def batch(sender, lines):
    global sent
    sent += len(lines)
    mr("--as", sender, "send", "--batch", stdin="".join(json.dumps(l) + "\n" for l in lines))


def drain(who):
    while '"id"' in mr("--as", who, "drain", "--json", "--limit", "1000", fails=True):
        pass


def work(count):
    """Takes and finishes that much work of the queue."""
    for i in range(count):
        claim = json.loads(mr("--as", "bob", "recv", "queue:work", "--json").splitlines()[0])
        mr("--as", "bob", "done", claim["token"])


def trouble(n):
    """Two escalations, closed on the same day; work that lost its worker; a dead letter and a purged message."""
    for i in range(2):
        e = mr("--as", "alice", "escalate", "trouble %d of day %d" % (i, n)).split()[0]
        mr("--as", "bob", "escalate", "ack", e)
        mr("--as", "bob", "escalate", "close", e, "--reason", "settled")
    mr("gt", "--as", "bob", "deacon", "redispatch", "gt-%d" % n, "--rig", "beads")
    for verb in ("retry", "drop"):
        for dead in json.loads("[" + ",".join(mr("dead", "list", "--json", fails=True).splitlines()) + "]")[:1]:
            mr("--as", "operator", "dead", verb, dead["id"], fails=True)
    mr("--as", "alice", "purge", mr("--as", "alice", "send", "bob", "-m", "a mistake").split()[0])


def abroad(n):
    """An agent of the linked room that lives for a day is written to, answers, and goes; so does one of this room."""
    there = ("--room", scratch + "/blue")
    for i in range(3):
        mr(*there, "register", "guest-%d-%d" % (n, i), below=["setsid"])
        mr("--as", "alice", "send", "guest-%d-%d@blue" % (n, i), "-m", "which port?")
        mr("--as", "alice", "send", "hermit@chip", "-m", "to another kind of room %d" % n)
        asked = json.loads(mr(*there, "--as", "guest-%d-%d" % (n, i), "inbox", "--json").splitlines()[0])["id"]
        mr(*there, "--as", "guest-%d-%d" % (n, i), "reply", asked, "-m", "8081")
        mr("carry")
        mr(*there, "prune", "guest-%d-%d" % (n, i), "--force")
    visitor = "visitor-%d" % n
    mr("register", visitor, below=["setsid"])
    mr("--as", visitor, "send", "carol@blue", "-m", "a word")
    mr(*there, "--as", "carol", "drain", "--json")
    mr(*there, "--as", "carol", "archive", "--all-read", fails=True)
    mr("carry")
    mr("prune", visitor, "--force")
    mr("--room", "chipset:" + scratch + "/chip", "--as", "hermit", "drain", "--json", fails=True)


def backlog(n):
    """Much at once, and then nothing of it."""
    batch("alice", [dict(to="queue:work", body="load %d" % i) for i in range(40)])
    batch("alice", [dict(to="bob", body="load %d" % i) for i in range(100)])
    mr("--as", "bob", "check", "--inject", fails=True)
    for i in range(5):
        mr("--as", "alice", "nudge", "carol", "-m", "nudge %d" % i, fails=True)
    work(40)
    mr("index", fails=True)


def one_day(n):
    """The same every day."""
    trouble(n)
    abroad(n)
    mr("token", "create", "alice", "--expires", "1h")
    mr("token", "revoke", json.loads(mr("token", "create", "bob", "--json").splitlines()[0])["name"])
    if n % 10 == 5:
        backlog(n)
    session = "s-%d" % n
    hook("SessionStart", session, source="startup", model="m")
    batch("alice", [dict(to="bob", body="plain %d of day %d" % (i, n)) for i in range(bulk)])
    batch("alice", [dict(to="bob", body="keyed %d" % i, key="k-%d-%d" % (n, i)) for i in range(10)])
    batch("alice", [dict(to=["bob", "carol"], body="to both %d" % i) for i in range(3)])
    batch("alice", [dict(to="carol", body="question %d?" % i, by="1h") for i in range(2)])
    batch("alice", [dict(to="queue:work", body="job %d" % i) for i in range(5)])
    batch("alice", [dict(to="channel:news", body="news %d" % i) for i in range(3)])
    hook("UserPromptSubmit", session, prompt="go on")
    mr("--as", "alice", "nudge", "bob", "-m", "look %d" % n, fails=True)
    # One question is answered, the other is overdue and told.
    question = json.loads(mr("--as", "carol", "inbox", "--json", "--limit", "1").splitlines()[0])["id"]
    mr("--as", "carol", "reply", question, "-m", "answer")
    mr("--as", "alice", "check", "--inject", fails=True)
    for i in range(6):
        claim = json.loads(mr("--as", "bob", "recv", "queue:work", "--json").splitlines()[0])
        verb = ["done", "done", "release", "fail", "done", "done"][i]
        mr("--as", "bob", verb, claim["token"], *(["--reason", "cannot"] if verb == "fail" else []))
    for i in range(3):
        claim = json.loads(mr("--as", "bob", "recv", "--json").splitlines()[0])
        mr("--as", "bob", "done", claim["token"])
    mr("--as", "bob", "check", "--inject", fails=True)
    ghost = "ghost-%d" % n
    mr("register", ghost, below=["setsid"])
    mr("--as", "alice", "send", ghost, "-m", "for one who goes")
    mr("--as", "alice", "nudge", ghost, "-m", "come back", fails=True)
    mr("--as", ghost, "check", "--inject", fails=True)
    mr("--as", ghost, "send", "alice", "--key", "once", "-m", "farewell")
    mr("prune", ghost, "--force")
    hook("Stop", session, stop_hook_active=False, last_assistant_message="done")
    for who in ("alice", "bob", "carol", "operator"):
        drain(who)
    mr("--as", "bob", "archive", "--all-read", fails=True)
    if n % 4:  # some sessions are killed and never say that they end
        hook("SessionEnd", session, reason="other")


def shape(path):
    """A folder's name without what belongs to a day: months, ids, numbers, hashes."""
    path = re.sub(r"\d{4}-\d{2}(-\d{2})?", "MONTH", path)
    path = re.sub(r"0[0-9a-hjkmnp-tv-z]{25}", "ID", path)
    path = re.sub(r"(guest|ghost|visitor|main|s)-[0-9-]+", r"\1-N", path)
    return re.sub(r"/\d+(?=/|$)", "/N", path)


def census():
    files, size, folders, own = (collections.Counter() for _ in range(4))
    for top in (".mailroom", "blue", "state", "config"):
        for path, dirs, names in os.walk(os.path.join(scratch, top)):
            where = shape(os.path.relpath(path, scratch))
            folders[where] += 1
            own[where] += os.lstat(path).st_size
            for name in names:
                files[where] += 1
                try:
                    size[where] += os.lstat(os.path.join(path, name)).st_size
                except FileNotFoundError:
                    pass
    return files, size, folders, own


def main():
    global day
    shutil.copy("/bin/sh", scratch + "/claude")
    mr("init", "--name", "soak", fails=True)
    for agent in ("alice", "bob", "carol"):
        mr("register", agent)
    mr("--as", "alice", "queue", "create", "work")
    mr("--as", "alice", "channel", "create", "news", "--retain-count", "20")
    mr("--as", "bob", "channel", "subscribe", "news")
    os.mkdir("blue")
    mr("init", "--name", "blue", "./blue")
    mr("--room", scratch + "/blue", "register", "carol")
    mr("link", "blue", "./blue")
    os.makedirs("chip/mail/hermit")
    mr("link", "chip", "chipset:" + scratch + "/chip")
    mr("config", "set", "Bead-Status", "printf open")
    mr("config", "set", "Sling", "true")
    for setting, value in (("Keep-Archive", "3d"), ("Keep-Sent", "30"), ("Keep-Done", "3d"), ("Keep-Dead", "3d")):
        mr("config", "set", setting, value)
        mr("--room", scratch + "/blue", "config", "set", setting, value)
    counts = []
    n = 0
    for phase in range(2):
        for i in range(DAYS):
            day = n * STEP + 1
            one_day(n)
            n += 1
        # A few more commands, hours apart: what is due for removal goes.
        for i in range(30):
            day += 0.05
            mr("--as", "alice", "send", "carol", "-m", "tick")
            mr("--room", scratch + "/blue", "--as", "carol", "send", "carol", "-m", "tick")
        drain("carol")
        counts.append(census())
    tests = 0
    failed = 0
    before, after = counts
    for what, a, b, slack in (("files", before[0], after[0], 3), ("bytes", before[1], after[1], 4096), ("folders", before[2], after[2], 2),
                              ("bytes of its own", before[3], after[3], 8192)):
        grown = sorted((b[k] - a[k], k) for k in b if b[k] > a[k] * 1.1 + slack)
        for more, k in grown[::-1]:
            print("# %s: %d %s, then %d" % (k, a[k], what, b[k]))
        tests += 1
        failed += bool(grown)
        print("%sok %d - after %d messages no folder has more %s than after the first half (%d, then %d)" % (
            "not " if grown else "", tests, sent, what, sum(a.values()), sum(b.values())))
    print("1..%d" % tests)
    if os.environ.get("SOAK_KEEP"):
        print("# kept in " + scratch)
    else:
        subprocess.run(["chmod", "-R", "u+rwX", scratch])
        shutil.rmtree(scratch)
    sys.exit(1 if failed else 0)


main()
