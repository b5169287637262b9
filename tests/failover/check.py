#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py FOLDER - judges a campaign by its histories alone: what each worker was told, when, and what was there at the end. Prints what it
counted, one line for each violation (at most ten of a kind), and exits with 1 when there is one.

A line of a history is one call: op, t0 and t1 (when it began and ended, one clock for all), rc and what the answer named.
  send    what (a word that is in no other message), to, rc ok|doubt|failed, id, away (the answer was lost, and asked for again)
  claim   rc ok|empty|doubt|failed, id, token        done  id, token, rc ok|over|doubt|failed
  wait    rc ok|timeout|away|failed                  look  id, rc there|missing|failed
  round   kind: between its t0 and t1 one primary ended and another one began
  there   at the end: what, id, place; of work its state, and the token of a claim
"""
import collections, glob, json, sys

def read(folder):
    calls = []
    for name in sorted(glob.glob(folder + "/*.jsonl")):
        with open(name) as file:
            calls += [json.loads(line) for line in file]
    return calls

def judge(calls):
    wrong = collections.defaultdict(list)
    of = collections.defaultdict(list)
    for call in calls:
        of[call["op"]].append(call)
    there = collections.defaultdict(list)
    for row in of["there"]:
        there[row["what"]].append(row)
    work = {row["id"]: row for row in of["there"] if row["place"].startswith("queue:")}
    acked = {}
    for call in of["send"]:
        found = there[call["what"]]
        if call["rc"] == "ok":
            acked[call["id"]] = call
        if call["rc"] == "ok" and not any(row["id"] == call["id"] for row in found):
            wrong["acknowledged and lost"].append(call)
        if call["rc"] == "doubt" and not found:
            wrong["in doubt and never resolved"].append(call)
        if call["rc"] == "failed" and found and not any(c["what"] == call["what"] and c is not call for c in of["send"]):
            wrong["said to have failed, and is there"].append(call)
    for what, found in there.items():
        if len(found) > 1:
            wrong["doubled"].append({"what": what, "ids": sorted(row["id"] for row in found)})
    claims, dones = collections.defaultdict(list), collections.defaultdict(list)
    for call in of["claim"]:
        if call["rc"] == "ok":
            claims[call["id"]].append(call)
    for call in of["done"]:
        if call["rc"] == "ok":
            dones[call["id"]].append(call)
    unsure = {call["id"] for call in of["done"] if call["rc"] != "ok"}
    for id, held in claims.items():  # the leases outlast the campaign, and nobody gives work back
        row = work.get(id)
        if len(held) > 1:
            wrong["claim held twice"].append({"id": id, "tokens": [c["token"] for c in held]})
        elif id not in dones and id not in unsure and (not row or row["state"] != "claimed" or row["token"] != held[0]["token"]):
            wrong["claim lost"].append({"id": id, "claim": held[0], "there": row})
    for id, ended in dones.items():
        if len(ended) > 1:
            wrong["done twice"].append({"id": id, "by": [c["token"] for c in ended]})
        if id not in work or work[id]["state"] != "done":
            wrong["done and undone"].append({"id": id, "done": ended[0], "there": work.get(id)})
    for call in of["look"]:
        if call["rc"] == "missing" and call["id"] in acked and acked[call["id"]]["t1"] < call["t0"]:
            wrong["acknowledged, and a later look did not find it"].append(call)
    for call in of["wait"]:
        if call["rc"] == "failed":
            wrong["a wait that failed, and not because no server was there"].append(call)
    doubts = [c for c in of["send"] + of["claim"] + of["done"] if c.get("away") or c["rc"] == "doubt"]
    for turn in of["round"]:
        # a call that began before the end of the round and ended after its begin
        if not any(c["t0"] < turn["t1"] and c["t1"] > turn["t0"] for c in doubts):
            wrong["a round with nothing in doubt tested nothing"].append(turn)
    count = lambda op, rc: sum(c["rc"] == rc for c in of[op])
    took = sorted(turn["t1"] - turn["t0"] for turn in of["round"])
    figures = [("rounds", len(of["round"])), ("sends acknowledged", len(acked)), ("of these asked for again", sum(bool(c.get("away")) for c in of["send"])),
        ("sends in doubt", count("send", "doubt")), ("failed", count("send", "failed")), ("claims", count("claim", "ok")), ("done", count("done", "ok")),
        ("claims and dones in doubt", count("claim", "doubt") + count("done", "doubt") + sum(bool(c.get("away")) for c in of["claim"] + of["done"])),
        ("waits that ended with mail", count("wait", "ok")), ("looks", count("look", "there"))]
    if took:
        figures.append(("outage, median and longest", "%.1f s, %.1f s" % (took[len(took) // 2], took[-1])))
    return wrong, figures

def main(folder):
    wrong, figures = judge(read(folder))
    print("; ".join("%s %s" % f for f in figures))
    for kind, found in sorted(wrong.items()):
        print("VIOLATION %s: %d" % (kind, len(found)))
        for one in found[:10]:
            print("  " + json.dumps(one))
    return 1 if wrong else 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
