# SPDX-License-Identifier: MIT
# raw-http.py PORT [--all] [--body TEXT] LINE... - sends these lines as the head of a request, as they are, and prints the status of the answer; with
# --all of every answer until the server closes or says nothing for two seconds.
import re
import socket
import sys

port, args, all_of_them, body = int(sys.argv[1]), sys.argv[2:], False, ""
while args and args[0].startswith("--"):
    option = args.pop(0)
    if option == "--all":
        all_of_them = True
    else:
        body = args.pop(0)
head = "\r\n".join(args) + "\r\n\r\n" + body.replace("\n", "\r\n")
s = socket.create_connection(("127.0.0.1", port))
s.settimeout(2 if all_of_them else 20)
got = b""
try:
    s.sendall(head.encode())
    while True:
        piece = s.recv(65536)
        if not piece:
            break
        got += piece
        if not all_of_them and b"\r\n" in got:
            break
except OSError:
    pass
answers = re.findall(rb"HTTP/1\.[01] (\d\d\d) ", got) or [b"closed"]
for answer in answers if all_of_them else answers[:1]:
    print(answer.decode())
