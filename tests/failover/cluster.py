# SPDX-License-Identifier: MIT
"""cluster.py - two PostgreSQL servers, "a" and "b", each on a machine of its own: a network namespace. One is the primary, the other its
synchronous standby, and the rule is strict: without a standby nothing is accepted. Clients run in the namespace of this process.

    10.77.0.1 a --- bridge (here, 10.77.0.3) --- b 10.77.0.2      clients; cut() pulls the cable of one machine
    10.78.0.1 a ------------------------------- b 10.78.0.2      replication; cut_replication()

isolate() first puts the whole program into a network and a pid namespace of its own: whatever happens to it, nothing of this stays behind.
"""
import glob, os, shutil, signal, subprocess, sys, time

def bin_folder():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[-2]))
    return found[-1] if found and os.path.exists(found[-1] + "/initdb") else None

def why_not():
    """None, or why this machine cannot do it."""
    if os.getuid() != 0:
        return "needs root, for network namespaces"
    if not bin_folder():
        return "no PostgreSQL server is installed (Debian: postgresql)"
    if not shutil.which("ip"):
        return "no ip(8) is installed (Debian: iproute2)"
    probe = subprocess.run(["unshare", "--net", "--pid", "--fork", "--mount-proc", "ip", "link", "add", "br0", "type", "bridge"], capture_output=True, text=True)
    return "network namespaces are not possible here: " + probe.stderr.strip() if probe.returncode else None

def isolate():
    if os.environ.get("FAILOVER_INSIDE"):
        return
    os.environ["FAILOVER_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable] + sys.argv)

def run(*words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise RuntimeError("%s: exit %d: %s" % (" ".join(map(str, words)), done.returncode, (done.stderr + done.stdout).strip()[-800:]))
    return done.stdout

def until(what, test, seconds=30):
    """A server that is busy is slow: generous, and it fails with words."""
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            raise RuntimeError("%s did not happen within %d s" % (what, seconds))
        time.sleep(0.02)

class Machine:
    def __init__(self, cluster, name, number):
        self.name, self.number, self.cluster = name, number, cluster
        self.folder = os.path.join(cluster.folder, name)
        self.data = self.folder + "/data"
        self.address, self.private = "10.77.0.%d" % number, "10.78.0.%d" % number
        os.mkdir(self.folder, 0o700)
        shutil.chown(self.folder, "postgres", "postgres")
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        here = os.readlink("/proc/self/ns/net")
        until("a namespace", lambda: os.readlink("/proc/%d/ns/net" % self.holder.pid) != here)

    def within(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-n", *words]

    def as_server(self, *words):
        return self.within("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *words)

    def tool(self, name, *words):
        return run(*self.as_server(self.cluster.bin + "/" + name, *words), cwd="/")

    def sql(self, text, seconds=15):
        return run("timeout", seconds, *self.as_server(self.cluster.bin + "/psql", "-qAtX", "-h", self.folder, "-U", "mailroom", "-d", "postgres",
            "-v", "ON_ERROR_STOP=1", "-c", text), cwd="/").strip()

    def answers(self):
        try:
            return self.sql("SELECT 1", 3) == "1"
        except RuntimeError:
            return False

    def up(self, wait=True):
        log = open(self.folder + "/log", "ab")
        subprocess.Popen(self.as_server(self.cluster.bin + "/postgres", "-D", self.data), stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder)
        if wait:
            until("the start of " + self.name, self.answers)

    def postmaster(self):
        try:
            with open(self.data + "/postmaster.pid") as file:
                return int(file.readline())
        except (FileNotFoundError, ValueError):
            return 0

    def processes(self):
        top, found = self.postmaster(), []
        for folder in glob.glob("/proc/[0-9]*"):
            try:
                with open(folder + "/stat") as file:
                    words = file.read().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if top and words[0] != "Z" and (int(folder[6:]) == top or int(words[1]) == top):
                found.append(int(folder[6:]))
        return found

    def signal(self, sig):
        for pid in self.processes():
            try:
                os.kill(pid, sig)
            except ProcessLookupError:  # a backend that ended after it was listed
                pass

    def freeze(self, still):
        self.signal(signal.SIGSTOP if still else signal.SIGCONT)

    def kill(self):
        """As a machine dies: all of it at once."""
        self.signal(signal.SIGSTOP)  # first, so that none acts upon the death of another
        self.signal(signal.SIGKILL)
        until("the end of " + self.name, lambda: not self.processes(), 10)
        reap()

    def stop(self):
        top = self.postmaster()
        if top:
            os.kill(top, signal.SIGINT)
            until("the stop of " + self.name, lambda: not self.processes())
            reap()

    def cable(self, up):
        run("ip", "link", "set", "to-" + self.name, "up" if up else "down")
        run(*self.within("ip", "link", "set", "private", "up" if up else "down"))

def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

class Cluster:
    def __init__(self, folder, settings=""):
        self.folder, self.bin = folder, bin_folder()
        os.chmod(folder, 0o711)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "addr", "add", "10.77.0.3/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        self.a, self.b = Machine(self, "a", 1), Machine(self, "b", 2)
        for m in (self.a, self.b):
            run("ip", "link", "add", "to-" + m.name, "type", "veth", "peer", "name", "eth0", "netns", m.holder.pid)
            run("ip", "link", "set", "to-" + m.name, "master", "br0", "up")
            run(*m.within("ip", "link", "set", "lo", "up"))
            run(*m.within("ip", "addr", "add", m.address + "/24", "dev", "eth0"))
            run(*m.within("ip", "link", "set", "eth0", "up"))
        run(*self.a.within("ip", "link", "add", "private", "type", "veth", "peer", "name", "private", "netns", self.b.holder.pid))
        for m in (self.a, self.b):
            run(*m.within("ip", "addr", "add", m.private + "/24", "dev", "private"))
            run(*m.within("ip", "link", "set", "private", "up"))
        self.primary, self.standby = self.a, self.b
        self.a.tool("initdb", "-D", self.a.data, "-A", "trust", "-U", "mailroom", "-E", "UTF8", "--no-locale", "--no-sync")
        with open(self.a.data + "/pg_hba.conf", "a") as file:
            file.write("host all all 10.77.0.0/16 trust\nhost all all 10.78.0.0/16 trust\nhost replication all 10.78.0.0/16 trust\n")
        with open(self.a.data + "/postgresql.conf", "a") as file:
            file.write("listen_addresses = '*'\nunix_socket_permissions = 0700\nshared_buffers = 32MB\nmax_connections = 120\nwal_log_hints = on\nwal_keep_size = 256MB\n"
                "max_wal_size = 512MB\nsynchronous_standby_names = 'ANY 1 (a, b)'\nwal_sender_timeout = 3s\nwal_receiver_timeout = 3s\n"
                "wal_retrieve_retry_interval = 200ms\nhot_standby = on\nlogging_collector = off\n" + settings)
        self.configure(self.a)
        self.a.up()
        self.clone()
        self.until_pair()

    def configure(self, m):
        """What differs between the two."""
        other = self.b if m is self.a else self.a
        with open(m.data + "/postgresql.auto.conf", "w") as file:
            file.write("unix_socket_directories = '%s'\nprimary_conninfo = 'host=%s user=mailroom application_name=%s connect_timeout=2 keepalives_idle=2 "
                "keepalives_interval=1 keepalives_count=2 tcp_user_timeout=3000'\n" % (m.folder, other.private, m.name))
        shutil.chown(m.data + "/postgresql.auto.conf", "postgres", "postgres")

    def clone(self):
        """The standby, as a copy of the primary."""
        self.standby.tool("pg_basebackup", "-D", self.standby.data, "-h", self.primary.private, "-U", "mailroom", "-c", "fast", "--no-sync")
        self.follow(self.standby)

    def follow(self, m):
        self.configure(m)
        run(*m.as_server("touch", m.data + "/standby.signal"))
        m.up(False)

    def until_pair(self):
        def streams():
            try:
                return self.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'", 3) == "1"
            except RuntimeError:
                return False
        until("the standby", streams, 60)

    def cut_replication(self, cut=True):
        for m in (self.a, self.b):
            run(*m.within("ip", "link", "set", "private", "down" if cut else "up"))

    def promote(self):
        """The standby becomes the primary. It does not ask the old one."""
        self.standby.tool("pg_ctl", "-D", self.standby.data, "-s", "-w", "-t", "30", "promote")
        self.primary, self.standby = self.standby, self.primary

    def rejoin(self):
        """The old primary is fenced (killed), rewound to where the new one branched off, and follows it."""
        self.standby.kill()
        self.standby.cable(True)
        self.cut_replication(False)
        self.primary.sql("CHECKPOINT")  # before 16 pg_rewind reads the timeline of the source from its control file
        self.standby.tool("pg_rewind", "-D", self.standby.data, "--source-server=host=%s user=mailroom dbname=postgres" % self.primary.private, "--no-sync")
        self.follow(self.standby)
        self.until_pair()

    def spec(self, schema, more="", turned=False):
        hosts = [self.a.address, self.b.address]
        return "postgres://mailroom@%s/postgres?connect_timeout=2&tcp_user_timeout=2000%s#%s" % (",".join(hosts[::-1] if turned else hosts), more, schema)
