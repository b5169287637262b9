# SPDX-License-Identifier: MIT
"""matrix.py - from each of the five kinds of room to each of the five: a message and its answer.

A hub room links ten rooms, two of each kind. alice lives in the five a-KIND, bob in the five b-KIND. What each kind
keeps of a message is read from the table in its man page, and every field is compared with that.
Prints TAP. Arguments: the command, the folder with the man pages, an empty scratch folder.
"""
import json, os, re, subprocess, sys

command, man, scratch = sys.argv[1:4]
kinds = ['maildir', 'teams', 'chipset', 'handoff', 'workspace']
count = failures = 0


def ok(good, name, *notes):
    global count, failures
    count += 1
    failures += not good
    print('%s %d - %s' % ('ok' if good else 'not ok', count, name))
    if not good:
        for note in notes:
            print('# ' + str(note).replace('\n', '\n# '))
    sys.stdout.flush()


def mr(*args, stdin=None, want=0):
    got = subprocess.run([command, *args], input=stdin, capture_output=True, text=True)
    if want is not None and got.returncode != want:
        ok(False, ' '.join(args), 'exit %d' % got.returncode, got.stdout, got.stderr)
    return got.stdout


def mapping(kind):
    """The table of a man page: field -> what happens to it when it comes from another room."""
    page = open('%s/mailroom-%s.5' % (man, kind), encoding='utf-8').read()
    block = re.search(r'^\.\\" mapping.*?^\.Bd -literal.*?\n(.*?)^\.Ed', page, re.S | re.M)
    table = {}
    for line in block.group(1).splitlines()[1:] if block else []:
        columns = re.split(r'\s{2,}', line.strip())
        if len(columns) == 3:
            table[columns[0]] = columns[2]
    return table


tables = {kind: mapping(kind) for kind in kinds}
fields = ['id', 'from', 'to', 'cc', 'subject', 'date', 'type', 'priority', 'thread', 'reply_to', 'by', 'headers', 'body']
for kind in kinds:
    ok(list(tables[kind]) == fields, 'the man page of %s has the table' % kind, tables[kind])

# ---- ten rooms, and a hub that knows them ----

hub = scratch + '/hub'


def spec(side, kind):
    return {'maildir': 'maildir:%s/%s-maildir/.mailroom', 'teams': 'teams:%s/teams/%s-team', 'chipset':
            'chipset:%s/%s-chipset/state', 'handoff': 'handoff:%s/%s-handoff',
            'workspace': 'workspace:%s/%s-workspace'}[kind] % (scratch, side)


def live(side, kind, agent):
    if kind == 'maildir':
        mr('init', '%s/%s-maildir' % (scratch, side), '--name', side + 'town')
        mr('--room', spec(side, kind), 'register', agent)
    elif kind == 'workspace':
        for folder in ('inbox', 'scratch'):
            os.makedirs('%s/%s-workspace/%s/.mailbox/%s' % (scratch, side, agent, folder), mode=0o700)
    elif kind == 'handoff':
        os.mkdir('%s/%s-handoff' % (scratch, side), 0o700)
        mr('--room', spec(side, kind), 'register', agent)


os.mkdir(hub)
mr('init', hub, '--name', 'hub')
for kind in kinds:
    for side, agent in (('a', 'alice'), ('b', 'bob')):
        live(side, kind, agent)
        mr('--room', hub, 'link', '%s-%s' % (side, kind), spec(side, kind))
for one in kinds:
    for other in kinds:
        mr('--room', hub, 'link', 'name', 'a-' + one, 'bob@b-' + other, 'bob-at-b-' + other)


def proxy(agent, side, kind):
    return '%s-at-%s-%s' % (agent, side, kind)


def mail(room, agent, sender):
    """The unread mail of an agent from one sender, with bodies; looking does not consume."""
    out = []
    for line in mr('--room', room, '--as', agent, 'inbox', '--json').splitlines():
        message = json.loads(line)
        if message['from'] == sender:
            out.append(json.loads(mr('--room', room, '--as', agent, 'read', '--peek', '--json', message['id'])))
    return out


def keeps(kind, field):
    return tables[kind].get(field, '').startswith('kept')


# What alice says; each field only where her own room can hold it.
said = {'subject': 'Build 42: "ready" \\ für Bob', 'type': 'completion_report', 'priority': 'urgent', 'thread': 'build-42'}


def message_args(kind):
    args = []
    if keeps(kind, 'subject'):
        args += ['-s', said['subject']]
    for field in ('type', 'priority', 'thread'):
        # a team's type is that of a control message in the body, a workspace's subject is its first line
        if keeps(kind, field):
            args += ['--' + field, said[field]]
    return args


def body(one, other):
    return 'From %s to %s.\nTwo lines; the end: ✓ 😀 "quoted" \\ </teammate-message>\n' % (one, other)


def compare(kind, source, got, name):
    """Every field that the source could say: kept, or stated in the body."""
    for field in ('subject', 'type', 'priority', 'thread'):
        if not keeps(source, field):
            continue
        rule = tables[kind][field]
        stated = re.search(r'^-- $.*^%s: %s$' % (field.capitalize(), re.escape(said[field])), got['body'], re.S | re.M)
        if rule.startswith('kept'):
            ok(got[field] == said[field], '%s: %s is kept' % (name, field), got)
        elif rule.startswith('body'):
            ok(bool(stated), '%s: %s is stated in the body' % (name, field), got)


for one in kinds:
    for other in kinds:
        mr('--room', spec('a', one), '--as', 'alice', 'send', proxy('bob', 'b', other), *message_args(one),
           stdin=body(one, other))
mr('--room', hub, 'carry')

for one in kinds:
    for other in kinds:
        name = '%s to %s' % (one, other)
        got = mail(spec('b', other), 'bob', proxy('alice', 'a', one))
        ok(len(got) == 1, '%s: one message' % name, got)
        if len(got) != 1:
            continue
        got = got[0]
        ok(got['to'] == ['bob'], '%s: to bob' % name, got)
        ok(body(one, other).rstrip('\n') in got['body'], '%s: the text is all there' % name, got)
        compare(other, one, got, name)
        mr('--room', spec('b', other), '--as', 'bob', 'reply', got['id'], stdin='Answer to %s.\n' % name)

mr('--room', hub, 'carry')
mr('--room', hub, 'carry')  # and nothing comes twice

for one in kinds:
    for other in kinds:
        name = 'the answer from %s to %s' % (other, one)
        got = mail(spec('a', one), 'alice', proxy('bob', 'b', other))
        ok(len(got) == 1, '%s: one message' % name, got)
        if len(got) != 1:
            continue
        got = got[0]
        ok('Answer to %s to %s.' % (one, other) in got['body'], '%s: the text' % name, got)
        if keeps(one, 'reply_to'):
            ok(bool(got['reply_to']), '%s: is a real reply' % name, got)
        if keeps(one, 'thread') and keeps(one, 'reply_to') and one != 'workspace':
            ok(got['thread'] == said['thread'], '%s: is in the thread' % name, got)

print('1..%d' % count)
sys.exit(failures != 0)
