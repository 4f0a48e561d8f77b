"""Reconciles two tables as most people would: a dict of rows, and a look-up for each of the others."""
import csv
import sys

with open(sys.argv[1], newline="") as f:
    operations = {row["key"]: row for row in csv.DictReader(f)}
with open(sys.argv[3], "w", newline="") as f:
    out = csv.writer(f)
    out.writerow(["kind", "op", "effect"])
    seen = set()
    with open(sys.argv[2], newline="") as effects:
        for e in csv.DictReader(effects):
            o = operations.get(e["key"])
            if o is None:
                out.writerow(["orphan", "", e["id"]])
            elif e["key"] in seen:
                out.writerow(["duplicate", o["id"], e["id"]])
            elif int(o["amount"]) != int(e["amount"]) or o["currency"] != e["currency"]:
                out.writerow(["mismatch", o["id"], e["id"]])
            seen.add(e["key"])
    for key, o in operations.items():
        if key not in seen:
            out.writerow(["missing", o["id"], ""])
