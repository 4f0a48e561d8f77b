// Give money back once, whatever crashes: a tool of an agent, guarded by three SQL calls.
//
//   node refund.js CASE ORDER CHARGE AMOUNT CURRENCY
import { randomUUID } from "node:crypto";
import pg from "pg";

interface Claim {
  claimed: boolean; key: string; token: string; request: { charge: string; amount: number };
  marker: { name: string; value: string }; send_within_seconds: number; in_doubt: boolean;
}
interface Answer { operation_id?: string; verdict: string; final?: boolean; note?: string; retry_after_seconds?: number }
interface Report { class: string; effect_id?: string; error_code?: string; result?: object }

const env = (name: string): string => process.env[name] ?? (() => { throw new Error(`${name} is not set`); })();

// One call. An answer whose commit is perhaps not on the standby is none: its wait was ended, told by a warning alone.
async function ledger<T>(db: pg.Client, name: string, fields: object): Promise<T> {
  const routines: (string | undefined)[] = [];
  const note = (notice: { routine?: string }) => routines.push(notice.routine);
  db.on("notice", note);
  const { rows } = await db.query(`SELECT reconciler.${name}($1::jsonb) AS answer`, [JSON.stringify(fields)]);
  db.off("notice", note);
  if (routines.includes("SyncRepWaitForLSN")) throw new Error(`${name}: perhaps not on the standby, so it does not count; run it again`);
  return rows[0].answer as T;
}

// One attempt: what was recorded, under the recorded key, within the lease.
async function send(claim: Claim): Promise<Report> {
  const { charge, amount } = claim.request;
  const form = new URLSearchParams({ charge, amount: String(amount), [`metadata[${claim.marker.name}]`]: claim.marker.value });
  let response: Response, answer: any;
  try {
    response = await fetch(env("STRIPE_API_URL") + "/v1/refunds", {
      method: "POST", body: form, redirect: "manual", signal: AbortSignal.timeout(claim.send_within_seconds * 1000),
      headers: { Authorization: `Bearer ${env("STRIPE_API_KEY")}`, "Idempotency-Key": claim.key },
    });
    answer = await response.json();
  } catch (error: any) {
    const never = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"].includes(error?.cause?.code);
    return { class: never ? "not_sent" : "indeterminate", error_code: never ? "no_connection" : "no_answer" };
  }
  return classify(response, answer, claim.in_doubt);
}

function classify(response: Response, answer: any, inDoubt: boolean): Report {
  if (response.ok && answer?.id) {
    const known: Record<string, string> = { succeeded: "succeeded", failed: "refused", canceled: "refused" };
    return { class: known[answer.status] ?? "accepted", effect_id: answer.id, result: { id: answer.id, status: answer.status } };
  }
  const error = answer?.error;
  const code: string = error?.code ?? error?.type ?? `http_${response.status}`;
  const report = (kind: string): Report => ({ class: kind, error_code: code });
  if ([401, 403, 429].includes(response.status) && code !== "lock_timeout") return report("not_sent");
  if (response.status === 500 && error) return report("stored_error");
  if ([400, 402, 404].includes(response.status) && error && error.type !== "idempotency_error") {
    // To a repeat a no says nothing about the first attempt, unless it is that one's stored answer.
    const answers = !inDoubt || response.headers.get("Idempotent-Replayed") === "true";
    return report(answers ? "refused" : "not_sent");
  }
  return report("indeterminate");
}

async function refund(db: pg.Client, [reference, order, charge, amount, currency]: string[]): Promise<Answer> {
  const opened = await ledger<Answer & { operation_id: string }>(db, "open_operation", {
    action: "refund.create", target: `order:${order}`, parent: charge, case: reference, step: 1, amount: Number(amount),
    currency, request: { charge, amount: Number(amount) }, agent: "refund-ts",
  });
  if (!["new", "existing"].includes(opened.verdict)) return opened;
  const { operation_id } = opened, call = randomUUID();
  for (;;) { // the ledger says when to stop
    const claim = await ledger<Claim & Answer>(db, "claim_operation", { operation_id, holder: "refund-ts", call });
    if (!claim.claimed) return claim;
    const answer = await ledger<Answer>(db, "finish_attempt", { operation_id, token: claim.token, ...(await send(claim)) });
    if (answer.retry_after_seconds === undefined) return { operation_id, ...answer };
    await new Promise((wait) => setTimeout(wait, answer.retry_after_seconds! * 1000));
  }
}

const db = new pg.Client({ connectionString: env("RECONCILER_DATABASE_URL") });
await db.connect();
console.log(JSON.stringify(await refund(db, process.argv.slice(2))));
await db.end();
