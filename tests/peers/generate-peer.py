#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A generator of workspace messages, written from the description of the format (mailroom-workspace(5)) and nothing else.

    generate-peer.py --receiver-inbox-path P --reply-inbox-path P [--message-type T] [--request-id I] [--channel-id C]
                     [--body TEXT | --body-file FILE] [--output FILE]
"""
import argparse
import pathlib
import sys
import uuid


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--request-id", default="")
    p.add_argument("--message-type", choices=("NEW", "REPLY"), default="NEW")
    p.add_argument("--channel-id", default="")
    p.add_argument("--receiver-inbox-path", required=True)
    p.add_argument("--reply-inbox-path", required=True)
    p.add_argument("--body")
    p.add_argument("--body-file")
    p.add_argument("--output")
    return p.parse_args()


def body_of(o):
    if o.body is not None:
        return o.body
    if o.body_file is not None:  # as text: every kind of line end becomes \n
        return pathlib.Path(o.body_file).read_text(encoding="utf-8")
    return sys.stdin.buffer.read().decode("utf-8")


def message(o):
    head = ["---", f"REQUEST_ID: {o.request_id or uuid.uuid4().hex}", f"MESSAGE_TYPE: {o.message_type}"]
    if o.channel_id:
        head.append(f"CHANNEL_ID: {o.channel_id}")
    head += [f"RECEIVER_INBOX_PATH: {o.receiver_inbox_path}", f"REPLY_INBOX_PATH: {o.reply_inbox_path}", "---"]
    return "\n".join(head + ["", body_of(o).rstrip("\n")]).rstrip() + "\n"


o = options()
data = message(o).encode("utf-8")
if o.output:
    target = pathlib.Path(o.output)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
else:
    sys.stdout.buffer.write(data)
