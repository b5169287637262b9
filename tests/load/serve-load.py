#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve-load.py [--rounds N] [--events N] [--streams N] - what an open view costs the room. Prints TAP.

A room with 12 agents; `mailroom serve` with STREAMS open /events streams and 50 requests a second.

counts    Every event reaches every stream; descriptors stay flat; RSS stays under 50 MB; the processor time of the server for an
          event and a request, and its system calls, are printed. Always.
rounds    N times: a block of sends with the server and its clients stopped (SIGSTOP), and a block with both running, in turn. The
          median of the ratios of both medians is at most 1.05. Only on a quiet machine (`make serve-load`); 0 rounds by default.
"""
import argparse, json, os, random, re, selectors, signal, socket, statistics, subprocess, sys, tempfile, threading, time

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=0)
parser.add_argument("--sends", type=int, default=60, help="of a block")
parser.add_argument("--events", type=int, default=300)
parser.add_argument("--streams", type=int, default=200)
parser.add_argument("--rate", type=float, default=50, help="requests a second")
parser.add_argument("--paths", default="/ /threads /agents /queues /search?q=older /api/v1/agents /api/v1/messages?limit=20 /metrics")
parser.add_argument("--trace", action="store_true", help="count system calls with strace")
o = parser.parse_args()

top = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.abspath(os.environ.get("BIN", top + "/build/musl/mailroom"))
SERVE = os.path.abspath(os.environ.get("SERVE", os.path.dirname(os.environ.get("DEVBIN", top + "/build/glibc/mailroom")) + "/mailroom-serve"))
scratch = tempfile.mkdtemp(prefix="mailroom-load.")
env = {"PATH": os.environ["PATH"], "HOME": scratch, "XDG_STATE_HOME": scratch + "/state", "XDG_CONFIG_HOME": scratch + "/config", "LC_ALL": "C.UTF-8",
       "MAILROOM_DATA": top + "/share/mailroom", "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "")}
os.chdir(scratch)
count = failed = 0


def check(what, good, more=""):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s%s" % ("" if good else "not ", count, what, "\n# " + more if more else ""), flush=True)


def mr(*args):
    return subprocess.run([BIN, *args], stdin=subprocess.DEVNULL, capture_output=True, env=env, text=True).stdout.strip()


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
    mr("--as", name, "drain")
server = subprocess.Popen([SERVE, "serve", "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env, text=True)
link = server.stdout.readline().strip()
port = int(re.search(r":(\d+)/", link).group(1))
host = "Host: 127.0.0.1:%d\r\n" % port


def connect():
    return socket.create_connection(("127.0.0.1", port))


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

def clients(report):
    """Opens the streams, then asks RATE times a second, until it is ended. Writes what it saw, a line a second."""
    watch = selectors.DefaultSelector()
    seen = {}
    last, again = {}, 0

    def stream(i):
        s = connect()
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
    askers = {i: connect() for i in idle}
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
                ids = re.findall(rb"(?m)^id: (\S+)\n", data)
                if ids:
                    last[key.data] = ids[-1].decode()
                tail = seen[key.data][-30:]
                mails[key.data] += (tail + data).count(OURS) - tail.count(OURS)
                seen[key.data] = data
                continue
            if not data:  # a connection that asks for nothing is closed
                watch.unregister(key.fileobj)
                key.fileobj.close()
                askers[key.data] = connect()
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


reading, writing = os.pipe()
client = os.fork()
if client == 0:
    os.close(reading)
    try:
        clients(os.fdopen(writing, "w"))
    finally:
        os._exit(1)
os.close(writing)
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
    for i in range(o.events):
        send(i)
        if i % 1000 == 999:  # a room whose agents read
            for name in agents:
                mr("--as", name, "drain")
    reached = until(lambda: state["least"] >= o.events)
    check("every event reaches every stream", reached and (state["most"] == o.events or state["again"]), json.dumps(state))
    took = time.monotonic() - begun
    after = proc(server.pid, before["fds"] + 4)
    check("no request failed", state["bad"] == 0 and state["asked"] > asked, json.dumps(state))
    if o.rounds:
        check("there were as many requests as were meant", (state["asked"] - asked) / took > 0.9 * o.rate, "%.1f a second" % ((state["asked"] - asked) / took))
    if not env["TSAN_OPTIONS"]:
        check("RSS is under 50 MB", after["rss"] < 50 << 10, "%d KiB" % after["rss"])
    check("descriptors are flat", after["fds"] <= before["fds"] + 4, "%d before, %d after" % (before["fds"], after["fds"]))
    user, system = after["user"] - before["user"], after["system"] - before["system"]
    print("# %d events, %d requests in %.1f s: %.2f s of processor (%.2f in the kernel), %.0f %% of one" %
          (o.events, state["asked"] - asked, took, user + system, system, 100 * (user + system) / took))
    if tracer:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        print(re.sub("(?m)^", "# ", "\n".join(open("calls").read().splitlines()[:24])))
    # ---- rounds ----
    ratios, with_ms, without_ms = [], [], []
    n = 0
    for r in range(o.rounds):
        medians = {}
        for running in random.sample([False, True], 2):
            for pid in (server.pid, client):
                os.kill(pid, signal.SIGCONT if running else signal.SIGSTOP)
            time.sleep(0.3)
            times = [send(n := n + 1) for _ in range(o.sends)]
            medians[running] = statistics.median(times)
        ratios.append(medians[True] / medians[False])
        with_ms.append(medians[True] * 1000)
        without_ms.append(medians[False] * 1000)
        for pid in (server.pid, client):
            os.kill(pid, signal.SIGCONT)
    if ratios:
        resampled = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
        ratio, low, high = statistics.median(ratios), resampled[50], resampled[-51]
        check("no send is slowed by more than 5 %", ratio <= 1.05, "%.3f (95 %%: %.3f to %.3f) of %d rounds; %.2f ms with, %.2f ms without" %
              (ratio, low, high, len(ratios), statistics.median(with_ms), statistics.median(without_ms)))
finally:
    for pid in (client, server.pid):
        try:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    subprocess.run(["rm", "-rf", scratch])
print("1..%d" % count)
sys.exit(failed > 0)
