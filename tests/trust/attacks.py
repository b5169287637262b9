# SPDX-License-Identifier: MIT
"""What a folder from elsewhere can plant, tried as its owner would hope for it.

A user has two trusted rooms, `trusted` (with unread mail of bob) and `other`, and the hooks that `mailroom setup
claude-code` installs. Somebody ships a repository with a .mailroom that was written by hand: commands in every file that ever
held one, links into the user's rooms, records that claim to be half-done work, folders that are links to elsewhere. The
user clones it. Each plant is tried three times:

    found    a session is started in the clone: the installed hooks run, and the commands that setup allows beforehand
    named    the user names the room (--room), and runs everything: patrol, carry, doctor --fix, ...
    trusted  the user even trusts it, and works in it

What must hold each time: no command of the plant runs, nothing in the two trusted rooms changes by a byte, and the
user's configuration stays as it was.
"""
import hashlib, json, os, re, shutil, subprocess, sys, threading

BIN = os.environ["BIN"]
TOP = os.environ["MAILROOM_SCRATCH"]
HOME = os.environ["HOME"]
PWNED = TOP + "/pwned"
count = failures = 0


def ok(good, name, *notes):
    global count, failures
    count += 1
    if good:
        print("ok %d - %s" % (count, name))
        return
    failures += 1
    for note in notes:
        for line in str(note).splitlines()[:12]:
            print("# " + line)
    print("not ok %d - %s" % (count, name))


def run(*argv, cwd=None, stdin="", env=None, limit=20):
    whole = dict(os.environ, **(env or {}))
    try:
        p = subprocess.run(argv, cwd=cwd, input=stdin, env=whole, capture_output=True, text=True, errors="replace", timeout=limit)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", "timeout")
    return p


def mr(*argv, cwd=None, **more):
    return run(BIN, *argv, cwd=cwd or TOP, **more)


def user(*argv, **more):
    """The user in a terminal of their own: not below the process that plays the harness here."""
    return mr(*argv, env={"XDG_STATE_HOME": TOP + "/user-state"}, **more)


def must(p):
    if p.returncode != 0:
        print("Bail out! %s: %s%s" % (p.args, p.stdout, p.stderr))
        sys.exit(1)
    return p


def fingerprint(*roots):
    """Every name, mode, link and byte below these folders. Times of access say nothing."""
    h = hashlib.sha256()
    for root in roots:
        for at, folders, files in os.walk(root):
            folders.sort()
            for name in sorted(files + [f for f in folders if os.path.islink(at + "/" + f)]) + folders:
                path = at + "/" + name
                st = os.lstat(path)
                h.update(("%s %o %d\n" % (path, st.st_mode, st.st_uid)).encode())
                if os.path.islink(path):
                    h.update(os.readlink(path).encode())
                elif os.path.isfile(path):
                    h.update(open(path, "rb").read())
    return h.hexdigest()


# ---- The user's own ----

os.makedirs(PWNED)
must(mr("setup", "claude-code", "--apply"))
for name in "trusted", "other":
    os.makedirs("%s/%s" % (TOP, name))
    must(mr("init", "--name", name, cwd=TOP + "/" + name))
    for agent in "bob", "carol":
        must(mr("register", agent, cwd=TOP + "/" + name))
    must(mr("--as", "carol", "send", "bob", "-s", "private", "-m", "for bob alone", cwd=TOP + "/" + name))
TRUSTED, OTHER = TOP + "/trusted/.mailroom", TOP + "/other/.mailroom"
IDENTITY = re.search("Identity: (.*)", open(TRUSTED + "/room").read()).group(1)
MARK_TEXT = "for bob alone"
CONFIG = os.environ["XDG_CONFIG_HOME"]
SETTINGS = json.load(open(HOME + "/.claude/settings.json"))


def hooks(event):
    for group in SETTINGS["hooks"].get(event, []):
        for hook in group["hooks"]:
            yield hook["command"], bool(hook.get("asyncRewake"))


# ---- What is planted ----

ID = "01k9w3b7zq8m4c2v6t1x5n0prs"
SECONDS = "1772706600"
MAIL = (
    "From: alice@x\nTo: %s@x\nSubject: %s\nDate: Thu, 05 Mar 2026 10:30:00 +0000\nMessage-ID: <" + ID + "@x>\n%s"
    "MIME-Version: 1.0\nContent-Type: text/markdown; charset=utf-8\n\n%s\n"
)


def pwn(n):
    return "touch %s/%s" % (PWNED, n)


def base(n, agents=("alice", "bob", "carol", "operator"), more="", name="x"):
    """A room with mail waiting for the clone's own name, as files."""
    files = {"room": "Format: 1\nName: %s\nCreated: 2026-01-01T00:00:00Z\nSync: full\n%s" % (name, more)}
    for agent in tuple(agents) + ("clone%s" % n, "repo%s" % n):
        at = "agents/%s" % agent
        files[at + "/agent"] = "Name: %s\nCreated: 2026-01-01T00:00:00Z\n" % agent
        for folder in "tmp", "cur":
            files["%s/%s/.keep" % (at, folder)] = ""
        files["%s/new/%s.%s.mr" % (at, SECONDS, ID)] = MAIL % (agent, "HELP: it burns", "Mailroom-Priority: urgent\n", "Problem: $(touch x)")
    for folder in "dead/tmp", "dead/new", "dead/cur", "spool", "keys", "holds", "records":
        files[folder + "/.keep"] = ""
    return files


def lines(where, text):
    def plant(n):
        files = base(n)
        files[where] = files.get(where, "") + text.replace("PWN", pwn(n)).replace("TRUSTED", TRUSTED)
        return files

    return plant


def settings(text):
    return lambda n: base(n, more=text.replace("PWN", pwn(n)).replace("TRUSTED", TRUSTED) + "\n")


def link(room, *names):
    """A link to a room of the user's, mail that waits to go out, and a plan that says in whose name."""

    def plant(n):
        files = base(n, more="Identity: %s\n" % IDENTITY)
        text = "Name: blue\nRoom: %s\nCreated: 2026-01-01T00:00:00Z\n" % room
        for pair in names:
            text += "Name: %s\n" % pair
        files["links/blue"] = text
        files["queues/link-blue/settings"] = (
            "Name: link-blue\nClaimers: @carry\nOrder: priority\nMax-Claims: 0\nLease: 600s\nAttempts: 0\nStatus: active\n"
        )
        body = MAIL % ("bob@blue", "forged", "", "from carol, she says")
        for bucket in "2/%s" % ID, "2/0", "2/%s" % SECONDS:
            files["queues/link-blue/ready/%s/%s.%s.mr" % (bucket, SECONDS, ID)] = body.replace("alice@x", "mallory@x")
        digest = hashlib.sha256(b"bob@blue").hexdigest()[:16]
        files["records/carrying/blue/%s-%s" % (ID, digest)] = "Recipient: bob@blue\nAs: carol\nReply-To: \nThread: \n"
        files["records/carried/blue/%s" % digest] = "Local: mallory\nForeign: bob\nSent: %s %s %s %s\n" % (ID, ID, ID, ID)
        return files

    return plant


def symlink(where, target):
    def plant(n):
        files = base(n, more="Identity: %s\n" % IDENTITY)
        for name in [f for f in files if f == where or f.startswith(where + "/")]:
            del files[name]
        files[where] = ("->", target)
        return files

    return plant


def spool(to, extra=""):
    def plant(n):
        files = base(n)
        files["spool/%s" % ID] = "Id: %s\n%sFrom: carol\nDigest: %s\n%sNext: 0000000000\n" % (
            ID, "".join("To: %s\n" % t for t in to), "0" * 64, extra)
        files["spool/%s.mr" % ID] = MAIL % ("bob", "spooled", "", "from the spool")
        return files

    return plant


def process_note(n):
    """A patrol's note that names a process of the user's as its handler, far beyond its time."""
    files = base(n)
    stat = open("/proc/%d/stat" % VICTIM.pid).read().rsplit(")", 1)[1].split()
    boot = open("/proc/sys/kernel/random/boot_id").read().strip()
    ns = os.stat("/proc/self/ns/pid").st_ino
    for agent in "bob", "alice":
        files["records/handled/%s/%s" % (agent, ID)] = (
            "State: running\nAttempt: 1\nFailures: 0\nProcess: %d %s %d %s\nUntil: 2020-01-01T00:00:00Z\nAt: 2020-01-01T00:00:00Z\n"
            "Type: HELP\n" % (VICTIM.pid, stat[19], ns, boot)
        )
    return files


HELP = "Type: HELP\nSummary: x\nSubject: HELP: {Topic}\nField: Topic; text; required; subject\nField: Problem; text\n"
UP = "../.."  # from clones/cloneN to the folder with trusted/
PLANTS = {}


def plant(name, fn):
    PLANTS[name] = fn


for setting in "Notify", "Sling", "Bead-Status":
    plant("room: %s" % setting, settings("%s: PWN" % setting))
    plant("room: %s, with the identity of a trusted room" % setting, settings("Identity: %s\n%s: PWN" % (IDENTITY, setting)))
for text in (
    "Patrol-Handler: HELP PWN", "Patrol-Handler: HELP sh -c 'PWN'", "Handler-HELP: PWN", "Wake-bob: PWN", "Session-Handlers: yes",
    "Nudge-On-Send: yes", "Trusted: 2026-01-01T00:00:00Z init", "Link-blue: maildir:TRUSTED", "Escalate-Critical: operator\nNotify: PWN",
    "Patrol-Wake: yes\nPatrol-Watch: *\nPatrol-Alert-To: operator", "Share: group\nNotify: PWN", "Types: TRUSTED/types",
    "Unknown-Recipients: hold\nNotify: PWN", "Hygiene-Policy: TRUSTED/room", "Notify: PWN\nNotify: PWN\nNOTIFY: PWN",
    "Identity: ../../../../%s\nNotify: PWN" % IDENTITY, "Identity: /etc/passwd", "Keep-Keys: 0s", "Sync: none\nNotify: PWN",
    "Name: ../../trusted\nNotify: PWN", "Notify:PWN", " Notify: PWN", "Notify: |PWN", "Notify: `PWN`",
):
    plant("room: " + text.replace("PWN", "COMMAND").replace("TRUSTED", "..").replace("\n", " / ")[:60], settings(text))
for wake in "PWN", "sh -c 'PWN'", "`PWN`", "PWN {x}":
    plant("agents: Wake: " + wake, lines("agents/bob/agent", "Wake: %s\n" % wake))
plant("agents: a registration of the clone's own name with Wake", lambda n: dict(base(n), **{"agents/clone%s/agent" % n: "Name: clone%s\nCreated: 2026-01-01T00:00:00Z\nWake: %s\nHandler: %s\n" % (n, pwn(n), pwn(n))}))
for pane in "Pane: /tmp/x %3", "Tmux: /tmp/x,1,0\nTmux-Pane: %1":
    plant("lives: a terminal of somebody (%s)" % pane.split(":")[0], lines("agents/operator/lives/1", "Life: 1\nStarted: 2026-01-01T00:00:00Z\nSession: claude-code-victim\nProcess: 1 1 1 x\n%s\n" % pane))
for handler in "PWN", "sh -c 'PWN'", "{Topic}", "sh -c '{Problem}'", "merge", "../../../bin/touch":
    plant("types: Handler: " + handler, lines("types/HELP", HELP + "Handler: %s\n" % handler))
    plant("types: Handler: %s, of a type that is shipped" % handler, lines("types/POLECAT_DONE", "Type: POLECAT_DONE\nSummary: x\nSubject: HELP: {Topic}\nField: Topic; text; required; subject\nHandler: %s\n" % handler))
for room in "maildir:TRUSTED", "maildir:%s/trusted/.mailroom" % UP, "%s/trusted" % UP, "TRUSTED":
    room = room.replace("TRUSTED", TRUSTED)
    for names in (("spy bob", "mallory carol"), ("bob bob",), ("alice bob", "bob carol"), ()):
        plant("links: %s (%s), %s" % ("relative" if UP in room else "absolute", room.split("/")[0][:8], ", ".join(names) or "nobody"), link(room, *names))
plant("links: to a team of the user's", link("teams:%s/.claude/teams/crew" % HOME, "spy lead"))
plant("links: to the mailbox skill", link("handoff:/tmp/agent-mailbox", "spy bob"))
plant("links: to a folder of the user's", link("workspace:%s" % HOME, "spy bob"))
plant("links: a name that leaves the folder", link("maildir:" + TRUSTED, "spy ../../../bob", "spy ../bob", "mallory /bob"))
for where in ("agents", "agents/bob", "agents/bob/new", "agents/bob/cur", "agents/bob/agent", "dead", "spool", "records", "links", "types", "room", "queues", "holds", "keys", "nudges", "groups", "channels"):
    plant("symlink: %s into a trusted room" % where, symlink(where, TRUSTED + "/" + where))
    plant("symlink: %s into a trusted room, relative" % where, symlink(where, "../%s/trusted/.mailroom/%s" % ("/".join([UP] + [".."] * where.count("/")), where)))
plant("symlink: agents/bob/tmp to a folder", symlink("agents/bob/tmp", PWNED))
plant("symlink: .Sent to a folder", symlink("agents/alice/.Sent", TRUSTED + "/agents/bob"))
for to in (["bob"], ["bob", "carol"], ["../../../../trusted/.mailroom/agents/bob"], ["queue:link-blue"], ["bob@trusted"], ["channel:../x"]):
    plant("spool: a delivery to " + ",".join(to)[:40], spool(to))
plant("spool: a delivery to a mailbox to be made", spool(["../x", "dave"], "Make-Mailboxes: yes\n"))
plant("keys: of a carrier", lines("keys/@carry/" + "0" * 64, "Id: %s\nTo: bob\nDigest: x\nNext: 0000000000\n" % ID))
plant("holds: of somebody else", lines("holds/abcdefghjkmn", "Agent: ../bob\nLife: 1\nSession: x\nProcess: 1 1 1 x\n"))
plant("held: mail with a token", lines("agents/bob/held/1/h.abcdefghjkmn.0.1.%s.%s.mr" % (SECONDS, ID), MAIL % ("bob", "held", "", "x")))
for text in ("Text: PWN\nFrom: x\n", "Kind: mail\nText: $(PWN)\nFrom: `PWN`\n"):
    plant("nudges: " + text[:12].strip(), lines("nudges/bob/1772706600000000000-abcd", text))
for kind in "due", "purged", "escalation", "policy", "dead-done", "announced", "woken", "handled", "cooldown", "linking":
    plant("records: %s" % kind, lines("records/%s/bob/x" % kind, "Id: %s\nTo: bob\nCommand: PWN\nBy: 2020-01-01T00:00:00Z\nResult: begun\n" % ID))
    plant("records: %s of the room" % kind, lines("records/%s/_/x" % kind, "Id: %s\nNotify: PWN\nWake: PWN\nOldest: x\n" % ID))
plant("records: a patrol's note about a process of the user's", process_note)
plant("groups: with a command", lines("groups/all", "Name: all\nMember: bob\nMember: `PWN`\nMember: |PWN\nMember: bob@blue\n"))
plant("channels: with a command", lines("channels/news/settings", "Name: news\nSubscriber: $(PWN)\nNotify: PWN\n"))
plant("queues: with a command", lines("queues/q/settings", "Name: q\nClaimers: *\nHandler: PWN\nOrder: priority\nLease: 600s\nAttempts: 3\nStatus: active\n"))
plant("git: a worktree pointer into the user's repository", lambda n: dict(base(n), **{"../planted/.git": "gitdir: %s/trusted/.git" % TOP}))
plant("config: a copy of the configuration in the room", lambda n: dict(base(n), **{"../.config/mailroom/rooms/" + IDENTITY: "Room: maildir:%s\nNotify: %s\nTrusted: 2026-01-01T00:00:00Z init\n" % (TRUSTED, pwn(n)), "rooms/" + IDENTITY: "Notify: %s\n" % pwn(n)}))
plant("claude: project settings with hooks are the harness's business, the room stays data", lambda n: dict(base(n), **{"../README": "hello"}))

# ---- Trying one ----

EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")


def write(root, files):
    for name, text in files.items():
        path = os.path.normpath(root + "/.mailroom/" + name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(text, tuple):
            os.symlink(text[1], path)
        else:
            open(path, "w").write(text)


def clone(n, files):
    repo, at = TOP + "/repos/repo%s" % n, TOP + "/clones/clone%s" % n
    os.makedirs(repo)
    write(repo, files)
    must(run("git", "init", "-q", repo))
    must(run("git", "-C", repo, "-c", "core.safecrlf=false", "add", "-A", "-f"))
    must(run("git", "-C", repo, "commit", "-q", "-m", "x"))
    must(run("git", "clone", "-q", repo, at))
    return at


def session(n, cwd, waits_too=False):
    """What the harness runs by itself, and what setup allowed beforehand."""
    sid = "s%s" % n
    env = {"CLAUDE_CODE_SESSION_ID": sid}
    said = ""
    for event in EVENTS:
        data = json.dumps({"hook_event_name": event, "session_id": sid, "cwd": cwd, "source": "startup", "tool_name": "Bash", "prompt": "hi"})
        for command, waits in hooks(event):
            if waits and not (waits_too and event == "SessionStart"):
                continue
            p = run("sh", "-c", command, cwd=cwd, stdin=data, limit=0.3 if waits else 20)
            said += p.stdout if not waits else ""
        if event == "SessionStart":
            for words in (["send", "operator", "-m", "hi"], ["inbox"], ["send", "bob@blue", "-m", "hi"], ["drain"]):
                mr(*words, cwd=cwd, env=env)
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "send", "arguments": {"to": "operator", "body": "x"}}}
            start = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
            mr("mcp", cwd=cwd, env=env, stdin="".join(json.dumps(m) + "\n" for m in (start, call)))
    return said


EVERYTHING = (
    ["--as", "alice", "send", "operator", "-m", "hi"], ["--as", "alice", "send", "--notify", "bob", "carol", "-m", "hi"],
    ["--as", "alice", "send", "bob@blue", "-m", "hi"], ["carry"], ["--as", "bob", "patrol"], ["--as", "operator", "patrol"], ["--as", "bob", "drain"],
    ["--as", "bob", "recv"], ["--as", "alice", "escalate", "-m", "help"], ["escalate", "stale"], ["--as", "deacon", "gt", "sling", "gt-1", "x"],
    ["--as", "alice", "gt", "deacon", "redispatch", "gt-1"], ["doctor", "--fix"], ["--as", "bob", "check", "--inject"], ["--as", "bob", "handoff", "--collect", "-m", "x"],
    ["--as", "alice", "nudge", "operator", "-m", "x"], ["link", "list"], ["who"], ["config", "adopt"], ["--as", "bob", "wait", "--timeout", "0"],
)


LONG = bool(os.environ.get("MAILROOM_TEST_LONG"))


def everything(cwd, *before):
    for words in EVERYTHING if LONG else EVERYTHING[:13]:
        mr(*before, *words, cwd=cwd)


def judge(name, before, config):
    pwned = os.listdir(PWNED)
    for f in pwned:
        os.unlink(PWNED + "/" + f)
    now = fingerprint(TRUSTED, OTHER)
    ok(not pwned and now == before and fingerprint(CONFIG) == config and VICTIM.poll() is None, name,
        "ran: %s" % pwned, "trusted rooms changed: %s" % (now != before), "configuration changed: %s" % (fingerprint(CONFIG) != config),
        "process killed: %s" % (VICTIM.poll() is not None))


VICTIM = subprocess.Popen(["sleep", "600"], start_new_session=True)
BEFORE = fingerprint(TRUSTED, OTHER)
tried = 0
for n, (name, fn) in enumerate(list(PLANTS.items())):
    at = clone(n, fn(n))
    config = fingerprint(CONFIG)
    said = session(n, at, n % 12 == 0)
    judge("found: " + name, BEFORE, config)
    if MARK_TEXT in said or "additionalContext" in said:
        ok(False, "found: the model is told nothing: " + name, said)
    everything(at, "--room", at)
    judge("named: " + name, BEFORE, config)
    trusts = user("trust", at).returncode == 0  # a room that is broken cannot be trusted, and is tried all the same
    config = fingerprint(CONFIG)
    session("t%d" % n, at, n % 12 == 6)
    everything(at)
    judge("trusted: " + name, BEFORE, config)
    if trusts:
        must(user("trust", "--remove", at))
        tried += 1
    shutil.rmtree(at, ignore_errors=True)
    shutil.rmtree(TOP + "/repos/repo%s" % n, ignore_errors=True)

# ---- Places: the same hostile room, found in other ways ----


def hostile(where, n, text="Notify: PWN\n"):
    write(where, base(n, more=text.replace("PWN", pwn(n))))


def place(name, cwd, n, says=True, extra=lambda: None):
    config = fingerprint(CONFIG)
    before = fingerprint(TRUSTED, OTHER)
    said = session(n, cwd)
    extra()
    judge("found: " + name, before, config)
    if says:
        ok("is not trusted" in said and "additionalContext" not in said, "and the user is told, not the model: " + name, said)


os.makedirs(TOP + "/up/a/b/c")
hostile(TOP + "/up", "p1")
place("in a parent folder", TOP + "/up/a/b/c", "p1")
hostile(HOME, "p2")
os.makedirs(HOME + "/work", exist_ok=True)
place("in $HOME itself", HOME + "/work", "p2")
shutil.rmtree(HOME + "/.mailroom")
# behind an untrusted room no other is looked for
os.makedirs(TOP + "/trusted/sub/deep")
hostile(TOP + "/trusted/sub", "p3")
place("between the session and a trusted room", TOP + "/trusted/sub/deep", "p3")
shutil.rmtree(TOP + "/trusted/sub")
# a linked worktree meets in the main one's room
os.makedirs(TOP + "/main")
must(run("git", "init", "-q", TOP + "/main"))
must(run("git", "-C", TOP + "/main", "commit", "-q", "--allow-empty", "-m", "x"))
hostile(TOP + "/main", "p4")
must(run("git", "-C", TOP + "/main", "worktree", "add", "-q", TOP + "/linked"))
place("in the main worktree of a linked one", TOP + "/linked", "p4")
# a folder that claims to be a worktree of the user's repository
must(run("git", "init", "-q", TOP + "/trusted"))
must(run("git", "-C", TOP + "/trusted", "commit", "-q", "--allow-empty", "-m", "x"))
fake = TOP + "/fake"
os.makedirs(fake + "/planted")
open(fake + "/planted/HEAD", "w").write("ref: refs/heads/main\n")
open(fake + "/planted/commondir", "w").write(TOP + "/trusted/.git\n")
open(fake + "/planted/gitdir", "w").write(fake + "/.git\n")
open(fake + "/.git", "w").write("gitdir: planted\n")
place("a folder that says it is a worktree of a trusted room's repository", fake, "p5", says=False)
# a submodule
sub = TOP + "/sub"
os.makedirs(sub)
must(run("git", "init", "-q", sub))
hostile(sub, "p6")
must(run("git", "-C", sub, "add", "-A", "-f"))
must(run("git", "-C", sub, "commit", "-q", "-m", "x"))
os.makedirs(TOP + "/super")
must(run("git", "init", "-q", TOP + "/super"))
must(run("git", "-C", TOP + "/super", "-c", "protocol.file.allow=always", "submodule", "add", "-q", sub, "inner"))
place("in a submodule", TOP + "/super/inner", "p6")
# a copy, a moved one, one in the old place of a trusted room, a symbolic link to a trusted one
shutil.copytree(TOP + "/trusted", TOP + "/copied", symlinks=True)
place("a copy of a trusted room, identity and all", TOP + "/copied", "p7")
os.makedirs(TOP + "/lnk")
os.symlink(TRUSTED, TOP + "/lnk/.mailroom")
place("a symbolic link to a trusted room", TOP + "/lnk", "p8")
os.makedirs(TOP + "/moved")
must(user("init", cwd=TOP + "/moved"))
must(user("config", "set", "Notify", pwn("p9"), cwd=TOP + "/moved"))
os.rename(TOP + "/moved", TOP + "/moved2")
place("a trusted room that was moved, with a command that was allowed", TOP + "/moved2", "p9")
os.makedirs(TOP + "/moved")
text = open(TOP + "/moved2/.mailroom/room").read()
write(TOP + "/moved", base("p10"))
open(TOP + "/moved/.mailroom/room", "w").write(text)
place("another folder in the place of a trusted room, identity and all", TOP + "/moved", "p10")
p = mr("--room", TOP + "/moved", "--as", "alice", "send", "operator", "-m", "x")
ok(p.returncode == 0 and not os.listdir(PWNED), "named, it gets its mail and runs nothing", p.stderr)
# git writes into a trusted room: pull, checkout
repo = TOP + "/pull"
os.makedirs(repo)
must(run("git", "init", "-q", "-b", "main", repo))
must(run("git", "-C", repo, "commit", "-q", "--allow-empty", "-m", "x"))
must(run("git", "clone", "-q", repo, TOP + "/pulled"))
must(mr("init", cwd=TOP + "/pulled"))
must(mr("register", "bob", cwd=TOP + "/pulled"))
write(repo, {k: v for k, v in link("maildir:" + TRUSTED, "spy bob", "mallory carol")("p11").items() if k != "room"})
write(repo, {"types/HELP": HELP + "Handler: %s\n" % pwn("p11"), "agents/bob/agent": "Name: bob\nCreated: 2026-01-01T00:00:00Z\nWake: %s\n" % pwn("p11")})
must(run("git", "-C", repo, "add", "-A", "-f"))
must(run("git", "-C", repo, "commit", "-q", "-m", "y"))
run("git", "-C", TOP + "/pulled", "pull", "-q")
place("what a pull wrote into a trusted room", TOP + "/pulled", "p11", says=False, extra=lambda: everything(TOP + "/pulled"))
# half of a room: init does not adopt what it finds
os.makedirs(TOP + "/half")
write(TOP + "/half", {k: v for k, v in base("p12").items() if k != "room"})
p = mr("init", cwd=TOP + "/half")
ok(p.returncode == 4 and "came from elsewhere" in p.stderr, "init refuses to complete a folder that came from elsewhere", p.stderr)
p = mr("init", cwd=TOP + "/up")
ok("not trusted" in p.stderr and mr("who", cwd=TOP + "/up").returncode == 4, "init does not trust a room that it finds", p.stderr)
# another user's, another device, a sandbox: as root only
if os.geteuid() == 0:
    hostile(TOP + "/theirs", "p13") if not os.makedirs(TOP + "/theirs") else None
    for at, folders, files in os.walk(TOP + "/theirs"):
        os.chown(at, 65534, 65534)
        for f in files:
            os.chown(at + "/" + f, 65534, 65534)
    place("of another user", TOP + "/theirs", "p13", says=False)
    p = mr("--room", TOP + "/theirs", "--as", "alice", "send", "operator", "-m", "x")
    ok(p.returncode == 4 and not os.listdir(PWNED), "named, the room of another user is refused", p.stderr)
    script = "mount -t tmpfs none %s/trusted/.mailroom && cp -a %s/copied/.mailroom/. %s/trusted/.mailroom/ && cd %s/trusted && %s inbox --as bob" % (TOP, TOP, TOP, TOP, BIN)
    if run("unshare", "--mount", "true").returncode != 0:  # as in a chroot
        ok(True, "another device in the place of a trusted room # skip nothing can be mounted here")
    else:
        p = run("unshare", "--mount", "sh", "-c", script)
        ok(p.returncode == 4 and "not trusted" in p.stderr, "another device in the place of a trusted room", p.returncode, p.stderr)
    # A sandbox as Codex makes it: the room and the state folder may be written, nothing else. What is written there
    # runs nothing outside.
    must(mr("register", "alice", cwd=TOP + "/other"))
    state = os.environ["XDG_STATE_HOME"] + "/mailroom"
    evil = TOP + "/evil.sh"
    open(evil, "w").write(
        "cd %s/other\nfor line in 'Notify: %s' 'Sling: %s' 'Patrol-Handler: HELP %s'; do echo \"$line\" >>.mailroom/room; done\n"
        "mkdir -p .mailroom/types .mailroom/links; printf '%sHandler: %s\\n' >.mailroom/types/HELP\n"
        "echo 'Wake: %s' >>.mailroom/agents/bob/agent\nprintf 'Room: maildir:%s\\nName: spy bob\\nName: mallory carol\\n' >.mailroom/links/blue\n"
        "%s config set Notify '%s'; %s trust %s/clones; mkdir -p %s/x 2>/dev/null; echo x >%s/mailroom/rooms/x\n"
        % ((TOP,) + (pwn("box"),) * 3 + (HELP.replace("\n", "\\n"), pwn("box"), pwn("box"), TRUSTED, BIN, pwn("box"), BIN, TOP, CONFIG, CONFIG))
    )
    config = fingerprint(CONFIG)
    before = fingerprint(TRUSTED)
    p = run("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", OTHER, OTHER, "--bind", state, state, "--unshare-net", "sh", evil)
    ok(fingerprint(CONFIG) == config, "from a sandbox the configuration cannot be written", p.stderr)
    session("box", TOP + "/other")
    everything(TOP + "/other")
    pwned = os.listdir(PWNED)
    ok(not pwned and fingerprint(TRUSTED) == before and fingerprint(CONFIG) == config, "what a sandbox wrote into a trusted room runs nothing outside of it", pwned)
else:
    print("# not root: the tests with another user, another device and a sandbox are left out")

VICTIM.kill()
VICTIM.wait()
ok(len(PLANTS) * 2 + tried >= 200 and tried > 60, "%d plants were found and named, %d could be trusted" % (len(PLANTS), tried))
print("1..%d" % count)
sys.exit(failures > 0)
