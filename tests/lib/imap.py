# SPDX-License-Identifier: MIT
"""imap.py PORT SECONDS - an IMAP client at work in a mailbox: flags, copies to a folder and back, expunge, append. Prints the subjects that it
expunged ("gone SUBJECT") and appended ("new SUBJECT"), a line each."""
import imaplib, random, re, sys, time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
random.seed(7)
deadline = time.monotonic() + seconds
m = imaplib.IMAP4("127.0.0.1", port)
m.login("operator", "none")
m.create("Kept")
number = 0


def subject(uid):
    answer = m.uid("FETCH", uid, "(BODY.PEEK[HEADER.FIELDS (SUBJECT)])")[1]
    for part in answer:
        if isinstance(part, tuple):
            return re.sub(rb"^Subject:\s*", b"", part[1].strip()).decode()
    return None


while time.monotonic() < deadline or number < 20:
    number += 1
    m.select("INBOX")
    uids = m.uid("SEARCH", None, "ALL")[1][0].split()
    if uids:
        uid = random.choice(uids)
        what = number % 5
        if what == 0:
            m.uid("STORE", uid, "+FLAGS", "(\\Seen)")
        elif what == 1:
            m.uid("STORE", uid, "+FLAGS", "(\\Flagged)")
        elif what == 2:
            name = subject(uid)
            if name and m.uid("MOVE", uid, "Kept")[0] == "OK" and name:
                print("moved", name)
        elif what == 3:
            name = subject(uid)
            if name and name.startswith("old"):
                m.uid("STORE", uid, "+FLAGS", "(\\Deleted)")
                print("gone", name)
                m.expunge()
    if number % 5 == 4 and number < 60:
        print("new appended-%d" % number)
        m.append("INBOX", "", None, b"From: phone@example.org\r\nTo: operator@town\r\nSubject: appended-%d\r\n\r\nfrom a phone\r\n" % number)
m.logout()
