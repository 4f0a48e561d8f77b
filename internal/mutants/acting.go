package main

// acting are faults in the functions that those who send call.
var acting = []mutant{
	{"act: a lease that lives is taken away", "migrations/functions/claim_locked.sql",
		`IF op.state = 'in_progress' AND op.lease_until <= now THEN`, `IF op.state = 'in_progress' THEN`, "migrations", "ClaimGives"},
	{"act: what is not committed may be sent", "migrations/functions/claim_locked.sql",
		`AND NOT own_write THEN`, `AND NOT own_write AND false THEN`, "migrations", "OpenRecords|OwnWrite"},
	{"act: any token finishes", "migrations/functions/finish_attempt.sql",
		` AND op.lease_token = asked.token`, ``, "migrations", "StaleToken|B29"},
	{"act: a finish after the lease counts", "migrations/functions/finish_attempt.sql",
		` AND op.lease_until > now THEN`, ` THEN`, "migrations", "AfterTheLease|B29"},
	{"act: a lease is as long as somebody wishes", "migrations/functions/lease_for.sql",
		`least(`, `greatest(`, "migrations", "CutsTheLease"},
	{"act: a key serves to its very end", "migrations/functions/key_serves.sql",
		`until < op.key_expires_at - (policy ->> 'key_margin')::interval`, `until < op.key_expires_at`, "migrations", "B43"},
	{"act: a key that is not sent protects a repeat", "migrations/functions/key_serves.sql",
		`AND 'key' = ANY (op.marks) AND 'key' = ANY (reconciler.policy_marks(policy))`, ``, "migrations", "WhatMayRepeat|ChangedPolicy"},
	{"act: a refusal of a repeat speaks for the first attempt", "migrations/functions/state_after.sql",
		`CASE WHEN earlier_in_doubt AND NOT repeat_answers THEN 'unknown' ELSE 'failed' END`, `'failed'`, "migrations", "FinishLeads"},
	{"act: a lost connection is a failure", "migrations/functions/state_after.sql",
		`ELSE 'unknown' -- accepted`, `ELSE 'failed' -- accepted`, "migrations", "FinishLeads"},
	{"act: one attempt more than allowed", "migrations/functions/claim_refusal.sql",
		`op.attempts >= (policy -> 'per_operation')::integer`, `op.attempts > (policy -> 'per_operation')::integer`, "migrations", "AttemptsAreLimited"},
	{"act: a back-off is not waited for", "migrations/functions/claim_refusal.sql",
		`CASE WHEN op.retry_at > now THEN`, `CASE WHEN op.retry_at > now AND false THEN`, "migrations", "B42"},
	{"act: a stored error is sent again", "migrations/functions/claim_refusal.sql",
		`WHEN op.last_class = 'stored_error' THEN 'the provider`, `WHEN op.last_class = 'stored' THEN 'the provider`, "migrations", "RepeatsAreRefused"},
	{"act: the same key with another request is the same", "migrations/functions/find_opened.sql",
		`IF known.request_hash = wanted.request_hash THEN`, `IF true THEN`, "migrations", "OpenAgain"},
	{"act: a second intent may be open beside the first", "migrations/functions/open_operation.sql",
		`CASE WHEN (policy.body -> 'one_open')::boolean THEN reconciler.intent_slot(wanted) END`, `NULL`, "migrations", "OneOpen"},
	{"act: euros and yen are one intent", "migrations/functions/intent_slot.sql",
		`op.amount, op.currency)`, `op.amount)`, "migrations", "OneOpen"},
	{"act: the fields of a derived key run together", "migrations/functions/derived_key.sql",
		`to_json(for_case)::text || ',' || to_json(action)::text`, `to_json(for_case || action)::text`, "migrations", "DerivesTheKey"},
	{"act: a lease that ended leaves no doubt", "migrations/functions/expire_lease.sql",
		`SET state = op.state, in_doubt = true`, `SET state = op.state, in_doubt = false`, "migrations", "B29|Model|ClaimGives|FinishLeads"},
	{"act: a late answer wakes nobody", "migrations/functions/finish_stale.sql",
		`SET next_check = now
`, `SET next_check = c.next_check
`, "migrations", "B29|AfterTheLease"},

	{"guard: what is sent may outlive its lease", "guard/attempt.go",
		`context.WithDeadline(ctx, r.deadline)`, `context.WithDeadline(ctx, r.deadline.Add(time.Hour))`, "guard", "WhileItsLease|B29"},
	{"guard: a deadline counts from the answer", "guard/attempt.go",
		`deadline: asked.Add(within - min(reserve, within/10))`, `deadline: asked.Add(within + time.Since(asked) - min(reserve, within/10))`, "guard", "WhileItsLease|Clocks"},
	{"guard: an unknown answer is a success", "guard/attempt.go",
		`report.Class = recon.ClassIndeterminate
	}
	return report`, `report.Class = recon.ClassSucceeded
	}
	return report`, "guard", "Verdicts|ReportThat|Whatever"},
	{"guard: an opened elsewhere is sent", "guard/guard.go",
		`case "new", "existing":`, `case "new", "existing", "open_elsewhere":`, "guard", "AnOpenOperation"},
}

// people are faults in what persons may do.
var people = []mutant{
	{"people: the second signer may be the first", "migrations/functions/seconds.sql",
		`f.proposal ->> 'person' <> person`, `f.proposal ? 'person'`, "migrations", "NobodyApproves"},
	{"people: a second may agree to something else", "migrations/functions/proposed_already.sql",
		`f.proposal ->> 'verb' = asked.verb`, `f.proposal ? 'verb'`, "migrations", "NobodyApproves"},
	{"people: a limit is read under another name", "migrations/functions/above_limit.sql",
		`p.body -> 'approve_above' INTO`, `p.body -> 'approve_below' INTO`, "migrations", "NobodyApproves"},
	{"people: the limit itself takes two", "migrations/functions/above_limit.sql",
		`WHERE v.amount > (limits`, `WHERE v.amount >= (limits`, "ledger", "AboveTheLimit"},
	{"people: an old screen decides", "migrations/functions/person_stale.sql",
		`IF seen_version <> f.version THEN`, `IF false THEN`, "ledger", "ChangedMeanwhile"},
	{"people: anybody acts for another", "migrations/functions/person_of.sql",
		`rolname = 'reconciler_daemon' AND pg_has_role(session_user, r.oid, 'MEMBER')`, `rolname = 'reconciler_daemon'`, "migrations", "WhoLoggedIn"},
	{"people: another amount is no difference", "migrations/functions/effect_differs.sql",
		`abs(op.amount - coalesce(e.amount, 0)) > tolerance`, `op.amount - coalesce(e.amount, 0) > tolerance`, "sweep", "TheDatabaseSeesEvery"},
	{"people: what is at the provider may be released", "migrations/functions/plan_release.sql",
		`IF e.id IS NOT NULL THEN`, `IF e.id IS NOT NULL AND false THEN`, "ledger", "ReleaseIsRefused|ProvidersWord|Answer"},
	{"people: what is at the provider did not happen", "migrations/functions/plan_did_not_happen.sql",
		`IF e.id IS NOT NULL THEN`, `IF e.id IS NOT NULL AND false THEN`, "ledger", "ProvidersWord|Answer"},
}
