"""Give money back once, whatever crashes: a tool of an agent, guarded by three SQL calls.

refund.py CASE ORDER CHARGE AMOUNT CURRENCY      (Debian: apt-get install python3-psycopg)
"""
import http.client
import json
import os
import sys
import time
import urllib.parse
import uuid

import psycopg


def ledger(db, function, **fields):
    """One call. An answer whose commit is perhaps not on the standby is none: its wait was ended, told by a warning alone."""
    routines = []

    def note(notice):
        routines.append(notice.source_function)

    db.add_notice_handler(note)
    answer = db.execute(f"SELECT reconciler.{function}(%s::jsonb)", [json.dumps(fields)]).fetchone()[0]
    db.remove_notice_handler(note)
    if "SyncRepWaitForLSN" in routines:
        raise RuntimeError(f"{function}: perhaps not on the standby, so it does not count; run it again")
    return answer


def send(claim):
    """One attempt: what was recorded, under the recorded key, within the lease."""
    url = urllib.parse.urlsplit(os.environ["STRIPE_API_URL"])
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    conn = connect(url.netloc, timeout=claim["send_within_seconds"])
    try:
        conn.connect()
    except OSError:
        return {"class": "not_sent", "error_code": "no_connection"}
    form = dict(claim["request"], **{"metadata[%s]" % claim["marker"]["name"]: claim["marker"]["value"]})
    try:
        conn.request("POST", "/v1/refunds", urllib.parse.urlencode(form), {
            "Authorization": "Bearer " + os.environ["STRIPE_API_KEY"], "Idempotency-Key": claim["key"],
            "Content-Type": "application/x-www-form-urlencoded"})
        response = conn.getresponse()
        answer = dict(json.loads(response.read()))
    except (OSError, http.client.HTTPException, TypeError, ValueError):
        return {"class": "indeterminate", "error_code": "no_answer"}  # it may have happened
    finally:
        conn.close()
    return classify(response, answer, claim["in_doubt"])


def classify(response, answer, in_doubt):
    if 200 <= response.status < 300 and answer.get("id"):
        kind = {"succeeded": "succeeded", "failed": "refused", "canceled": "refused"}.get(answer.get("status"), "accepted")
        return {"class": kind, "effect_id": answer["id"], "result": {"id": answer["id"], "status": answer["status"]}}
    error = answer.get("error") or {}
    code, replayed = error.get("code") or error.get("type"), response.headers.get("Idempotent-Replayed") == "true"
    kind = "indeterminate"
    if response.status in (401, 403, 429) and code != "lock_timeout":
        kind = "not_sent"
    elif response.status == 500 and error:
        kind = "stored_error"
    elif response.status in (400, 402, 404) and error and error.get("type") != "idempotency_error":
        # To a repeat a no says nothing about the first attempt, unless it is that one's stored answer.
        kind = "refused" if replayed or not in_doubt else "not_sent"
    return {"class": kind, "error_code": code or "http_%d" % response.status}


def refund(db, case, order, charge, amount, currency):
    answer = ledger(db, "open_operation", action="refund.create", target="order:" + order, parent=charge, case=case,
                    step=1, amount=amount, currency=currency, request={"charge": charge, "amount": amount}, agent="refund-py")
    if answer["verdict"] not in ("new", "existing"):
        return answer
    operation, call = answer["operation_id"], str(uuid.uuid4())
    while True:  # the ledger says when to stop
        answer = ledger(db, "claim_operation", operation_id=operation, holder="refund-py", call=call)
        if not answer["claimed"]:
            return answer
        answer = ledger(db, "finish_attempt", operation_id=operation, token=answer["token"], **send(answer))
        if "retry_after_seconds" not in answer:
            return dict(answer, operation_id=operation)
        time.sleep(answer["retry_after_seconds"])


if __name__ == "__main__":
    with psycopg.connect(os.environ["RECONCILER_DATABASE_URL"], autocommit=True) as connection:  # each call is committed
        print(json.dumps(refund(connection, *sys.argv[1:4], int(sys.argv[4]), sys.argv[5])))
