#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve-kills.py ROUNDS - the server is killed while it acts; nothing is half done. Prints TAP.

In each round the server is started, asked to do twelve things at once, killed (SIGKILL) a random moment later, and looked at with the
command: each thing was done as a whole or not at all, and what was answered was done. Then the same is asked again, as a client would:
now everything was done once.
"""
import atexit, http.client, json, os, random, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time, urllib.parse

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
top = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.abspath(os.environ.get("BIN", top + "/build/musl/mailroom"))
SERVE = os.path.abspath(os.environ.get("SERVE", os.path.dirname(os.environ.get("DEVBIN", top + "/build/dev/mailroom")) + "/mailroom-serve"))
scratch = tempfile.mkdtemp(prefix="mailroom-kills.")
env = {"PATH": os.environ["PATH"], "HOME": scratch, "XDG_STATE_HOME": scratch + "/state", "XDG_CONFIG_HOME": scratch + "/config", "LC_ALL": "C.UTF-8",
       "MAILROOM_DATA": top + "/share/mailroom", "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "")}
os.chdir(scratch)
random.seed(os.environ.get("SEED", "7"))
atexit.register(lambda: server and server.kill())
atexit.register(shutil.rmtree, scratch, True)
wrong = []
answered = unanswered = 0


def mr(*args):
    return subprocess.run([BIN, *args], stdin=subprocess.DEVNULL, capture_output=True, env=env, text=True)


def out(*args):
    return mr(*args).stdout.strip()


def objects(*args):
    return [json.loads(line) for line in mr(*args).stdout.splitlines()]


def must(what, good):
    if not good:
        wrong.append("round %d: %s" % (n, what))


mr("init", "--name", "kills")
for name in ("alice", "bob", "carol", "dave"):
    mr("register", name)
mr("--as", "alice", "queue", "create", "work", "--attempts", "9", "--lease", "1h")
token = out("token", "create", "alice")
cookie = server = None


def free_port():
    """One that the kernel gives to nobody by itself: the server comes back to it after each kill, because its cookie is for that port."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


port = free_port()


def start():
    global cookie, server
    server = subprocess.Popen([SERVE, "serve", "--listen", "127.0.0.1:%d" % port], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env, text=True)
    link = server.stdout.readline().strip()
    if not cookie:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        c.request("GET", link[link.index("/login"):])
        cookie = c.getresponse().getheader("Set-Cookie").split(";")[0]


def ask(path, body, headers):
    """Posts; the status and the text, or None when the server died."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        c.request("POST" if body is not None else "GET", path, body, headers)
        r = c.getresponse()
        return r.status, r.read().decode()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        c.close()


def api(what, **args):
    return lambda: ask("/api/v1/" + what, json.dumps(args), {"Cookie": cookie, "Content-Type": "application/json"})


def mcp(tool, **args):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": args}}
    return lambda: ask("/mcp", json.dumps(call), {"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})


def form(path, page, fields):
    """A form as the page has it, filled in: its token and its nonce are in it."""
    text = ask(page, None, {"Cookie": cookie})[1]
    text = text[text.index('action="%s"' % path):]
    given = dict(re.findall(r'<input type="hidden" name="(csrf|nonce|id|seen)" value="([^"]*)"', text[:text.index("</form>")]))
    body = urllib.parse.urlencode({**given, **fields})
    return lambda: ask(path, body, {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"})


def dead_letter(text):
    mr("--as", "dave", "drain")
    mr("--as", "alice", "send", "dave", "-m", text)
    claim = json.loads(out("--as", "dave", "recv", "--json"))
    mr("--as", "dave", "fail", claim["token"], "--reason", "cannot")
    return claim["id"]


def count(agent, subject):
    return sum(m["subject"] == subject for m in objects("--as", agent, "inbox", "--all", "--limit", "1000", "--json"))


for n in range(1, ROUNDS + 1):
    start()
    # ---- what there is to act on ----
    question = out("--as", "alice", "send", "operator", "-s", "question %d" % n, "-m", "x")
    second = out("--as", "alice", "send", "operator", "-s", "second %d" % n, "-m", "x")
    third = out("--as", "alice", "send", "operator", "-s", "third %d" % n, "-m", "x")
    retried, dropped = dead_letter("retried %d" % n), dead_letter("dropped %d" % n)
    mr("--as", "operator", "queue", "resume", "work")
    mr("--as", "alice", "send", "queue:work", "-m", "work %d" % n)
    claim = json.loads(out("--as", "bob", "recv", "queue:work", "--json"))
    actions = {
        "send": api("send", to="bob,carol", body="sent %d" % n, subject="sent %d" % n, key="key-%d" % n),
        "reply": form("/do/reply", "/thread/" + question, {"body": "answer %d" % n}),
        "form": form("/do/send", "/write?to=bob%20carol", {"to": "bob carol", "seen": "bob carol", "subject": "form %d" % n, "body": "form %d" % n}),
        "mark": api("mark", **{"as": "read", "id": [second]}),
        "archive": api("archive", id=third),
        "retry": api("retry", id=retried, to="carol"),
        "drop": api("drop", id=dropped),
        "release": api("release", id=claim["id"], reason="round %d" % n),
        "pause": api("pause", name="work"),
        "nudge": api("nudge", to=("alice", "bob", "carol", "dave")[n % 4], text="nudge %d" % n),
        "mcp": mcp("send", to="bob", subject="mcp %d" % n, body="mcp %d" % n, key="mcp-%d" % n),
        "all": api("send", to="@all", body="all %d" % n, subject="all %d" % n, key="all-%d" % n),
    }
    answers = {}

    def act(name):
        answers[name] = actions[name]()

    threads = [threading.Thread(target=act, args=(name,)) for name in random.sample(list(actions), len(actions))]
    for t in threads:
        t.start()
    wanted, end = random.randrange(11), time.monotonic() + 5  # by what was answered and not by the clock: a busy machine is slower
    while len(answers) < wanted and time.monotonic() < end:
        time.sleep(0.0005)
    time.sleep(random.random() * 0.005)
    server.send_signal(signal.SIGKILL)
    server.wait()
    for t in threads:
        t.join()
    for name, a in answers.items():
        answered += a is not None
        unanswered += a is None
        must("%s was refused: %s" % (name, a), a is None or a[0] in (200, 303))
    # ---- as a whole, or not at all ----
    def pair(subject, who):
        have = [count(a, subject) for a in who]
        must("'%s' is there %s times" % (subject, have), have in ([0] * len(who), [1] * len(who)))
        return have[0]

    done = {
        "send": pair("sent %d" % n, ("bob", "carol")),
        "form": pair("form %d" % n, ("bob", "carol")),
        "mcp": pair("mcp %d" % n, ("bob",)),
        "all": pair("all %d" % n, ("bob", "carol", "dave")),
        "mark": json.loads(out("--as", "operator", "read", "--peek", second, "--json"))["read"],
        "archive": third not in [m["id"] for m in objects("--as", "operator", "inbox", "--all", "--limit", "1000", "--json")],
        "drop": dropped not in [d["id"] for d in objects("dead", "list", "--json")],
        "pause": json.loads(out("queue", "show", "work", "--json"))["status"] == "paused",
    }
    states = [t["state"] for t in json.loads(out("queue", "show", "work", "--limit", "1000", "--json"))["tasks"] if t["id"] == claim["id"]]
    must("released work is %s" % states, states in (["claimed"], ["ready"]))
    done["release"] = states == ["ready"]
    must("an archived message is lost", out("--as", "operator", "read", "--peek", third, "--json") != "")
    mine = count("carol", "retried %d" % n)  # it has a new id
    still = sum(d["id"] == retried for d in objects("dead", "list", "--json"))
    must("a retried letter is there %d times, and %d dead" % (mine, still), mine <= 1 and mine + still >= 1)
    done["retry"] = mine == 1
    for name, is_done in done.items():
        must("%s was answered, and not done" % name, answers[name] is None or is_done)
    # ---- once more ----
    start()
    for name in ("send", "form", "mcp", "all", "reply"):
        again = actions[name]()
        must("%s again: %s" % (name, again), again is not None and again[0] in (200, 303))
    if still:
        actions["retry"]()
    server.send_signal(signal.SIGKILL)
    server.wait()
    for subject, who in (("sent %d", ("bob", "carol")), ("form %d", ("bob", "carol")), ("mcp %d", ("bob",)), ("all %d", ("bob", "carol", "dave")), ("Re: question %d", ("alice",)), ("retried %d", ("carol",))):
        have = [count(a, subject % n) for a in who]
        must("asked again, '%s' is there %s times" % (subject % n, have), have == [1] * len(who))
    if n % 10 == 0 or n == ROUNDS:
        looked = mr("doctor")
        must("doctor: " + looked.stdout + looked.stderr, looked.returncode == 0)
        for agent in ("alice", "bob", "carol", "dave", "operator"):
            mr("--as", agent, "drain")

left = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if os.readlink("/proc/%s/cwd" % pid) == scratch and int(pid) != os.getpid():
            left.append(open("/proc/%s/cmdline" % pid).read().replace("\0", " "))
    except OSError:
        pass
print("# %d actions were answered, %d were not" % (answered, unanswered))
print("%sok 1 - killed %d times: everything was done as a whole or not at all, and once when asked again" % ("not " if wrong else "", ROUNDS))
for w in wrong[:20]:
    print("# " + w.replace("\n", "\n# "))
print("%sok 2 - the kills met actions under way" % ("" if answered > ROUNDS and unanswered > ROUNDS else "not "))
print("%sok 3 - no process was left behind" % ("not " if left else ""))
for l in left:
    print("# " + l)
print("1..3")
sys.exit(bool(wrong or left) or not (answered > ROUNDS and unanswered > ROUNDS))
