# SPDX-License-Identifier: MIT
"""chipset-peer.py - a program of our own that keeps mail the way the mail-async recipe tells an agent to, its defects
included (one temporary name for all senders, a mark that brings archived mail back). For the tests.

    chipset-peer.py STATE send TO FROM SUBJECT BODY [TIMESTAMP [PRIORITY [TYPE]]]   prints the name
    chipset-peer.py STATE send-plain TO FROM PAYLOAD TIMESTAMP                      the second dialect
    chipset-peer.py STATE list AGENT | unread AGENT                                 JSON lines
    chipset-peer.py STATE mark AGENT NAME | archive AGENT NAME
    chipset-peer.py STATE nudge TO FROM MESSAGE TYPE TIMESTAMP
    chipset-peer.py STATE flood TO FROM COUNT       sends in a row; prints how many did not fail
    chipset-peer.py STATE look AGENT COUNT          lists until COUNT messages are there; fails at a file that is not whole
"""
import datetime, json, os, sys, time


def text_of(value):
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + '\n'


def put(folder, temporary, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, temporary), 'w', encoding='utf-8', newline='') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(os.path.join(folder, temporary), os.path.join(folder, name))


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='milliseconds').replace('+00:00', 'Z')


def send(state, to, sender, subject, body, timestamp=None, priority='normal', kind='coordination'):
    timestamp = timestamp or now()
    name = '%s-%s.json' % (timestamp.replace(':', '-'), sender)
    put(os.path.join(state, 'mail', to), '.msg.tmp', name, text_of({
        'from': sender, 'to': to, 'type': kind, 'subject': subject, 'body': body, 'timestamp': timestamp,
        'read': False, 'priority': priority}))
    return name


def send_plain(state, to, sender, payload, timestamp):
    folder = os.path.join(state, 'mail', to)
    os.makedirs(folder, exist_ok=True)
    name = '%s-%s.json' % (timestamp, sender)
    with open(os.path.join(folder, name), 'w', encoding='utf-8', newline='') as file:
        file.write(json.dumps({'from': sender, 'to': to, 'channel': 'mail', 'payload': payload, 'timestamp': timestamp,
                               'durable': True}, indent=2, ensure_ascii=False))
    return name


def listing(state, agent, strict=False):
    folder, out = os.path.join(state, 'mail', agent), []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith('.json'))
    except OSError:
        return out
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                out.append((name, json.load(file)))
        except (OSError, ValueError):
            if strict:
                raise
    return out


def mark(state, agent, name):
    path = os.path.join(state, 'mail', agent, name)
    try:
        with open(path, encoding='utf-8') as file:
            message = json.load(file)
    except (OSError, ValueError):
        return
    if not message.get('read'):
        message['read'] = True
        put(os.path.dirname(path), name + '.tmp', name, text_of(message))


def archive(state, agent, name):
    folder = os.path.join(state, 'mail', agent)
    os.makedirs(os.path.join(folder, 'archive'), exist_ok=True)
    os.rename(os.path.join(folder, name), os.path.join(folder, 'archive', name))


def nudge(state, to, sender, message, kind, timestamp):
    put(os.path.join(state, 'nudge', to), '.nudge.tmp', 'latest.json', text_of({
        'from': sender, 'to': to, 'type': kind, 'message': message, 'timestamp': timestamp, 'requires_response': True}))


def flood(state, to, sender, count):
    good = 0
    for i in range(int(count)):
        try:
            send(state, to, sender, 'flood %d' % i, 'x' * 200)
            good += 1
        except OSError:
            pass
    return good


def look(state, agent, count):
    end = time.time() + 60
    while time.time() < end:
        found = listing(state, agent, strict=True)
        for name, message in found:
            if name != '%s-%s.json' % (message['timestamp'].replace(':', '-'), message['from']) or message['to'] != agent:
                sys.exit('%s holds another message' % name)
        if len(found) >= int(count):
            return len(found)
    sys.exit('only %d of %s came' % (len(found), count))


def main(state, action, *args):
    if action in ('list', 'unread'):
        for name, message in listing(state, *args):
            if action == 'list' or not message.get('read'):
                print(json.dumps(dict(message, name=name), sort_keys=True))
    else:
        done = {'send': send, 'send-plain': send_plain, 'mark': mark, 'archive': archive, 'nudge': nudge, 'flood': flood,
                'look': look}[action](state, *args)
        if done is not None:
            print(done)


main(*sys.argv[1:])
