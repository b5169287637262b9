#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve-load.py [--rounds N] [--events N] [--streams N] - what an open view costs the room. Prints TAP.

A room with 12 agents; `mailroom serve` with STREAMS open /events streams and 50 requests a second.

counts    Every event reaches every stream; descriptors stay flat; RSS stays under 50 MB; the processor time of the server for an
          event and a request, and its system calls, are printed. Always.
rounds    N times, in random order, a block of sends with each of these running and the others stopped (SIGSTOP):
            nothing   neither a server nor clients
            control   the clients, and a responder that does nothing: it writes to each stream and for each request the bytes that
                      the server wrote once, as often as the server does
            server    the same clients, and the server
          A block counts by the median of its sends. What is compared is server with control, because the clients, which are a Python
          program here and browsers on another machine elsewhere, are none of the server's doing: the median of the ratios of a
          round is at most 1.05. Both ratios to nothing are printed beside it. Clients and responder run when nobody else wants
          the processor (SCHED_IDLE); the server as it sets itself. Only on a quiet machine (`make serve-load`); 0 rounds by default.
"""
import argparse, json, os, random, re, selectors, signal, socket, statistics, subprocess, sys, tempfile, threading, time

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=0)
parser.add_argument("--sends", type=int, default=60, help="of a block")
parser.add_argument("--events", type=int, default=300)
parser.add_argument("--streams", type=int, default=200)
parser.add_argument("--rate", type=float, default=50, help="requests a second")
parser.add_argument("--paths", default="/ /threads /agents /queues /search?q=older /api/v1/agents /api/v1/messages?limit=20 /metrics")
parser.add_argument("--batch", type=int, default=1, help="so many events are sent by one command, then all agents read")
parser.add_argument("--trace", action="store_true", help="count system calls with strace")
o = parser.parse_args()

top = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.abspath(os.environ.get("BIN", top + "/build/musl/mailroom"))
SERVE = os.path.abspath(os.environ.get("SERVE", os.path.dirname(os.environ.get("DEVBIN", top + "/build/glibc/mailroom")) + "/mailroom-serve"))
scratch = tempfile.mkdtemp(prefix="mailroom-load.")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
env = {"PATH": os.environ["PATH"], "HOME": scratch, "XDG_STATE_HOME": scratch + "/state", "XDG_CONFIG_HOME": scratch + "/config", "LC_ALL": "C.UTF-8",
       "MAILROOM_DATA": top + "/share/mailroom", "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "")}
os.chdir(scratch)
count = failed = 0


def check(what, good, more=""):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s%s" % ("" if good else "not ", count, what, "\n# " + more if more else ""), flush=True)


def mr(*args, input=""):
    return subprocess.run([BIN, *args], input=input, capture_output=True, env=env, text=True).stdout.strip()


def drain():
    """All agents read all they have: without --json a command shows only so much of it."""
    for name in agents:
        mr("--as", name, "drain", "--json")


# ---- The room and the server ----

agents = ["a%02d" % i for i in range(12)]
mr("init", "--name", "load")
for name in agents:
    mr("register", name)
mr("--as", "a00", "queue", "create", "work", "--attempts", "3")
for i in range(150):
    mr("--as", random.choice(agents), "send", random.choice(agents), "-s", "older mail %d" % i, "-m", "text of it")
for i in range(20):
    mr("--as", "a01", "send", "queue:work", "-m", "work %d" % i)
for name in agents[:6]:
    mr("--as", name, "drain", "--json")
server = subprocess.Popen([SERVE, "serve", "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env, text=True)
link = server.stdout.readline().strip()
port = int(re.search(r":(\d+)/", link).group(1))
host = "Host: 127.0.0.1:%d\r\n" % port


def connect(to=0):
    return socket.create_connection(("127.0.0.1", to or port))


def ask(s, path, cookie=""):
    s.sendall(("GET %s HTTP/1.1\r\n%s%s\r\n" % (path, host, cookie)).encode())
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(65536)
        if not more:
            return data, b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
    while len(body) < length:
        body += s.recv(1 << 20)
    return head, body


head, _ = ask(connect(), link[link.index("/login"):])
COOKIE = "Cookie: %s\r\n" % re.search(rb"(?i)set-cookie: ([^;]+)", head).group(1).decode()


def proc(pid, few=0):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    fds = 1 << 20
    for _ in range(250):  # a request that is being answered has some
        if fds <= few:
            break
        fds = min(fds, len(os.listdir("/proc/%d/fd" % pid)))
        time.sleep(0.02)
    rss = int(re.search(r"VmRSS:\s+(\d+)", open("/proc/%d/status" % pid).read()).group(1))
    return {"user": int(fields[11]) / os.sysconf("SC_CLK_TCK"), "system": int(fields[12]) / os.sysconf("SC_CLK_TCK"), "rss": rss, "fds": fds}


OURS = b'"subject":"event '  # what is sent here, once each

# ---- The clients: a process of their own, so that they can be stopped ----

def clients(to, report):
    """Opens the streams, then asks RATE times a second, until it is ended. Writes what it saw five times a second."""
    watch = selectors.DefaultSelector()
    seen = {}
    last, again = {}, 0

    def stream(i):
        s = connect(to)
        s.sendall(("GET /events HTTP/1.1\r\n%s%s%s\r\n" % (host, COOKIE, "Last-Event-ID: %s\r\n" % last[i] if i in last else "")).encode())
        watch.register(s, selectors.EVENT_READ, i)
        seen[i] = b""

    for i in range(o.streams):
        stream(i)
        time.sleep(0.012)  # a client may ask 100 times a second
    mails = [0] * o.streams
    paths = o.paths.split()
    asked, bad, begun, due, told = 0, 0, 0, time.monotonic(), 0.0
    idle, pending = [-1, -2, -3, -4], {}  # connections that ask
    askers = {i: connect(to) for i in idle}
    for i in askers:
        watch.register(askers[i], selectors.EVENT_READ, i)
    while True:
        now = time.monotonic()
        if now >= due and idle and o.rate:
            i = idle.pop()
            askers[i].sendall(("GET %s HTTP/1.1\r\n%s%s\r\n" % (paths[begun % len(paths)], host, COOKIE)).encode())
            pending[i] = b""
            begun += 1
            due = max(due + 1 / o.rate, now - 1)
        for key, _ in watch.select(max(0, min(0.05, due - now)) if idle else 0.05):
            data = key.fileobj.recv(1 << 18)
            if not data and key.data >= 0:  # it was too slow, on a machine that is busy: as a browser does it comes back
                watch.unregister(key.fileobj)
                key.fileobj.close()
                stream(key.data)
                again += 1
                continue
            if key.data >= 0:
                at = data.rfind(b"id: ")
                if at >= 0 and b"\n" in data[at:]:
                    last[key.data] = data[at + 4 : data.index(b"\n", at)].decode()
                tail = seen[key.data][-30:]
                mails[key.data] += (tail + data).count(OURS) - tail.count(OURS)
                seen[key.data] = data
                continue
            if not data:  # a connection that asks for nothing is closed
                watch.unregister(key.fileobj)
                key.fileobj.close()
                askers[key.data] = connect(to)
                watch.register(askers[key.data], selectors.EVENT_READ, key.data)
                if key.data not in idle:
                    bad += 1
                    idle.append(key.data)
                continue
            pending[key.data] += data
            head, sep, body = pending[key.data].partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if sep and (len(body) >= int(length.group(1)) if length else body.endswith(b"\r\n0\r\n\r\n")):
                asked += 1
                bad += not head.startswith(b"HTTP/1.1 200")
                idle.append(key.data)
        if now - told > 0.2:
            told = now
            report.write(json.dumps({"least": min(mails), "most": max(mails), "asked": asked, "bad": bad, "again": again, "streams": sum(1 for v in seen.values() if v)}) + "\n")
            report.flush()


def start(program, *args):
    """A process that runs the function, when nobody else wants the processor, until it is killed. Returns its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            if o.batch == 1:  # else it has to keep up, for one that is cut off is told of the last minutes again
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            program(*args)
        finally:
            os._exit(1)
    return pid


# ---- The control: the same bytes, and no room behind them ----

def responder(listener, answers, opening, mail, change, told):
    """Gives each path its answer; writes to all streams what was `told`, a byte for each mail, GAP seconds apart."""
    GAP = 0.1
    watch = selectors.DefaultSelector()
    watch.register(listener, selectors.EVENT_READ)
    watch.register(told, selectors.EVENT_READ)
    streams, waiting, due = [], 0, 0.0
    while True:
        now = time.monotonic()
        if waiting and now >= due:
            data = mail * waiting + change
            for s in streams:
                s.send(data)
            waiting, due = 0, now + GAP
        for key, _ in watch.select(due - now if waiting else None):
            if key.fileobj is listener:
                watch.register(listener.accept()[0], selectors.EVENT_READ)
            elif key.fileobj == told:
                waiting += len(os.read(told, 4096))
            else:
                path = key.fileobj.recv(4096).split(b" ", 2)
                if len(path) < 3:
                    watch.unregister(key.fileobj)
                elif path[1] == b"/events":
                    key.fileobj.sendall(opening)
                    streams.append(key.fileobj)
                else:
                    key.fileobj.sendall(answers[path[1].decode()])


def record():
    """What the responder says: the answers to all paths, the beginning of a stream, a mail and what follows it."""
    answers = {}
    for path in set(o.paths.split()):
        s = connect()
        s.sendall(("GET %s HTTP/1.1\r\nConnection: close\r\n%s%s\r\n" % (path, host, COOKIE)).encode())
        answers[path] = b"".join(iter(lambda: s.recv(1 << 20), b"")).replace(b"Connection: close\r\n", b"")
    s = connect()
    s.sendall(("GET /events HTTP/1.1\r\n%s%s\r\n" % (host, COOKIE)).encode())
    opening, data = s.recv(1 << 16), b""
    while b"retry:" not in opening:
        opening += s.recv(1 << 16)
    send(0)
    while b"event: mail" not in data or not data.endswith(b"}\n\n\r\n"):
        data += s.recv(1 << 16)
    at = data.rindex(b"id: ")
    return answers, opening, data[data.index(b"id: ") : at], data[at:]


reading, writing = os.pipe()
client = start(lambda: clients(port, os.fdopen(writing, "w")))
os.close(writing)
started = [client]
state = {"least": 0, "most": 0, "asked": 0, "bad": 0, "streams": 0}


def listen():
    for line in os.fdopen(reading):
        state.update(json.loads(line))


threading.Thread(target=listen, daemon=True).start()


def until(test, limit=60):
    end = time.monotonic() + limit
    while not test() and time.monotonic() < end:
        time.sleep(0.02)
    return test()


def send(i):
    """Seconds that a send took, its process included."""
    argv = [BIN, "--as", agents[i % 6], "send", agents[6 + i % 6], "-s", "event %d" % i, "-m", "x"]
    begun = time.perf_counter()
    pid = os.posix_spawn(BIN, argv, env, file_actions=[(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)])
    _, status = os.waitpid(pid, 0)
    assert status == 0
    return time.perf_counter() - begun


try:
    check("all streams are open", until(lambda: state["streams"] == o.streams), json.dumps(state))
    # ---- counts ----
    until(lambda: not o.rate or state["asked"] >= 20)  # each worker has opened the room
    before, asked = proc(server.pid, 1 << 19), state["asked"]
    begun = time.monotonic()
    tracer = subprocess.Popen(["strace", "-f", "-c", "-S", "calls", "-o", "calls", "-p", str(server.pid)], stderr=subprocess.DEVNULL) if o.trace else None
    warm = 0  # each worker keeps some folders open, mostly those that it used last
    for i in range(0, o.events, o.batch):
        if i <= o.events / 10 and i % 20 == 0:
            warm = max(warm, len(os.listdir("/proc/%d/fd" % server.pid)))
        if o.batch > 1:
            sender = agents[i // o.batch % 6]
            others = [name for name in agents if name != sender]
            lines = [json.dumps({"to": others[k % 11], "subject": "event %d" % k, "body": "x"}) for k in range(i, i + o.batch)]
            mr("--as", sender, "send", "--batch", input="\n".join(lines))
        else:
            send(i)
        if o.batch > 1 or i % 1000 == 999:  # a room whose agents read
            drain()
    reached = until(lambda: state["least"] >= o.events)
    if o.batch > 1:
        time.sleep(12)  # the server looks further back after mail was read
    check("every event reaches every stream", reached and (state["most"] == o.events or state["again"]), json.dumps(state))
    took = time.monotonic() - begun
    after = proc(server.pid, warm)
    check("no request failed", state["bad"] == 0 and (state["asked"] > asked or not o.rate), json.dumps(state))
    if o.rounds:
        check("there were as many requests as were meant", (state["asked"] - asked) / took > 0.9 * o.rate, "%.1f a second" % ((state["asked"] - asked) / took))
    if not env["TSAN_OPTIONS"]:
        check("RSS is under 50 MB", after["rss"] < 50 << 10, "%d KiB" % after["rss"])
    check("descriptors are flat", after["fds"] <= warm, "%d at most during the first events, %d after the last" % (warm, after["fds"]))
    user, system = after["user"] - before["user"], after["system"] - before["system"]
    print("# %d events, %d requests in %.1f s: %.2f s of processor (%.2f in the kernel), %.0f %% of one" %
          (o.events, state["asked"] - asked, took, user + system, system, 100 * (user + system) / took))
    if tracer:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        print(re.sub("(?m)^", "# ", "\n".join(open("calls").read().splitlines()[:24])))
    # ---- rounds ----
    if o.rounds:
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        told, tell = os.pipe()
        started.append(start(responder, listener, *record(), told))
        nowhere = open(os.devnull, "w")
        started.append(start(clients, listener.getsockname()[1], nowhere))
        time.sleep(0.02 * o.streams)
    arms = {"nothing": [], "control": started[1:], "server": [server.pid, client]}
    medians = {arm: [] for arm in arms}
    for n in range(o.rounds * len(arms)):
        if n % len(arms) == 0:
            order = random.sample(list(arms), len(arms))
        arm = order[n % len(arms)]
        for pid in started + [server.pid]:
            os.kill(pid, signal.SIGCONT if pid in arms[arm] else signal.SIGSTOP)
        time.sleep(0.3)
        times = []
        for i in range(o.sends):
            times.append(send(n * o.sends + i))
            if arm == "control":
                os.write(tell, b"x")
        medians[arm].append(statistics.median(times))
        if n % 300 == 299:  # a room whose agents read
            drain()

    def compare(one, other):
        ratios = [a / b for a, b in zip(medians[one], medians[other])]
        resampled = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
        text = "%s / %s: %.3f (95 %%: %.3f to %.3f)" % (one, other, statistics.median(ratios), resampled[50], resampled[-51])
        return statistics.median(ratios), text

    if o.rounds:
        ratio, text = compare("server", "control")
        times = ", ".join("%.2f ms %s" % (1000 * statistics.median(medians[arm]), arm) for arm in arms)
        check("no send is slowed by more than 5 %", ratio <= 1.05, "%s of %d rounds; %s" % (text, o.rounds, times))
        print("# %s; %s" % (compare("server", "nothing")[1], compare("control", "nothing")[1]))
finally:
    for pid in started + [server.pid]:
        try:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    subprocess.run(["rm", "-rf", scratch])
print("1..%d" % count)
sys.exit(failed > 0)
