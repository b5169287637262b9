# SPDX-License-Identifier: MIT
"""matrix.py - from each of the five kinds of room to each of the five: a message and its answer.

A hub room links ten rooms, two of each kind. alice lives in the five a-KIND, bob in the five b-KIND. What each kind
keeps of a message is read from the table in its man page, and every field is compared with that.
Prints TAP. Arguments: the command, the folder with the man pages, an empty scratch folder.
"""
import datetime, json, os, re, subprocess, sys, time

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
        os.mkdir('%s/%s-maildir' % (scratch, side))
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
        mr('--room', hub, 'link', '%s-%s' % (side, kind), spec(side, kind), '--make')
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
said = {'subject': 'Build 42: "ready" \\ für <Bob>', 'type': 'completion_report', 'priority': 'urgent',
        'thread': 'build-42'}
look_alikes = str.maketrans({'"': "'", '<': '‹', '>': '›'})


def sees(kind, field, source):
    """What a reader of that kind of room sees of a field that is kept."""
    if field == 'subject' and 'teams' in (kind, source):
        return said[field].translate(look_alikes)
    return said[field]


def message_args(kind):
    args = []
    if keeps(kind, 'subject'):
        args += ['-s', said['subject']]
    for field in ('type', 'priority', 'thread'):
        # a team's type is that of a control message in the body, a workspace's subject is its first line
        if keeps(kind, field):
            args += ['--' + field, said[field]]
    if kind == 'maildir':
        args += ['--header', 'X-Build: 42', '--by', '2h']
    return args


def body(one, other):
    return 'From %s to %s.\nTwo lines; the end: ✓ 😀 "quoted" \\ </teammate-message>\n' % (one, other)


def text_seen(one, other):
    """A team's texts cannot close the block in which a model is shown them."""
    text = body(one, other)
    return text.replace('</teammate-message', '<\\/teammate-message') if 'teams' in (one, other) else text


def states(got, name, value):
    return bool(re.search(r'^-- $.*^%s: %s' % (name, re.escape(value)), got['body'], re.S | re.M))


def seconds(date):
    return datetime.datetime.fromisoformat(date.replace('Z', '+00:00')).timestamp()


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def compare(kind, source, got, name):
    """Every field that the source could say: kept, or stated in the body."""
    for field in ('subject', 'type', 'priority', 'thread'):
        if not keeps(source, field):
            continue
        rule = tables[kind][field]
        want = sees(kind, field, source)
        if rule.startswith('kept'):
            ok(got[field] == want, '%s: %s is kept' % (name, field), got)
        elif rule.startswith('body'):
            ok(states(got, field.capitalize(), want), '%s: %s is stated in the body' % (name, field), got)
    if source == 'maildir':
        if keeps(kind, 'headers'):
            ok(got['headers'].get('X-Build') == '42', '%s: a header is kept' % name, got)
            ok(bool(got['by']), '%s: the time for an answer is kept' % name, got)
        else:
            ok(states(got, 'X-Build', '42'), '%s: a header is stated in the body' % name, got)
            ok(states(got, 'By', '2'), '%s: the time for an answer is stated in the body' % name, got)
    if keeps(source, 'date') and keeps(kind, 'date'):
        ok(abs(seconds(got['date']) - seconds(sent[source, kind]['date'])) < 2, '%s: the date is kept' % name, got)


sent = {}
for one in kinds:
    for other in kinds:
        out = mr('--room', spec('a', one), '--as', 'alice', 'send', '--json', proxy('bob', 'b', other),
                 *message_args(one), stdin=body(one, other))
        sent[one, other] = {'id': json.loads(out)['id'], 'date': now()}
time.sleep(2.1)  # so that a date that is not kept shows
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
        ok(text_seen(one, other).rstrip('\n') in got['body'], '%s: the text is all there' % name, got)
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
        if keeps(one, 'reply_to') and one in ('maildir', 'chipset'):  # the others have ids of their own
            ok(got['reply_to'] == sent[one, other]['id'], '%s: to what alice sent' % name, got, sent[one, other])
        if keeps(one, 'thread') and keeps(one, 'reply_to') and one != 'workspace':
            ok(got['thread'] == said['thread'], '%s: is in the thread' % name, got)

print('1..%d' % count)
sys.exit(failures != 0)
