package main

// recording are faults in what the ledger writes and reads.
var recording = []mutant{
	{"record: the version guards nothing", "ledger/record.go",
		`row.version != b.Versions[d.Operation] || `, ``, "ledger", "LostOperation|NeverOverwritten"},
	{"ledger: a commit whose wait was ended counts", "ledger/replies.go",
		`				reply[0] = 'E'`, `				_ = reply`, "ledger", "PerhapsNotOnTheStandby|RepliesPass"},
	{"record: a live lease is ended", "ledger/record.go",
		` || live[d.Operation] || `, ` || `, "ledger", "LiveLease"},
	{"record: another's effect is taken", "ledger/record.go",
		`closes(m) && (!there || o != "" && o != m.Owner())`, `closes(m) && !there && o != "-"`, "ledger", "NeverTakenFromItsOwner"},
	{"record: two of one intent are released", "ledger/record.go",
		`by != "" && by != c.Operation`, `false`, "ledger", "ReleaseGrants"},
	{"record: a stale hold writes", "ledger/hold.go",
		`s.token = $3 AND s.holder = $4
FOR SHARE`, `s.holder = $4 AND $3::bigint > 0
FOR SHARE`, "ledger", "OldName|StaleHold"},
	{"record: a source that is held is taken", "ledger/hold.go",
		`WHERE s.holder IS NULL OR s.lease_until IS NULL OR s.lease_until <= excluded.held_since`, `WHERE true`, "ledger", "OneHolder|ManyHolders"},
	{"record: a later holder has the same token", "ledger/hold.go",
		`token = s.token + 1`, `token = s.token`, "ledger", "OldName"},
	{"record: the oldest reading wins", "ledger/merge.go",
		`newest := now.read && !now.at.Before(old.seenAt)`, `newest := now.read && !now.at.After(old.seenAt)`, "ledger", "TestMerge"},
	{"record: an event moves a status back", "ledger/merge.go",
		`next.Status.Rank() > old.effect.Status.Rank()`, `next.Status.Rank() != old.effect.Status.Rank()`, "ledger", "TestMerge"},
	{"record: what contradicts is not read again", "ledger/merge.go",
		`	m.effect.NeedsRead = true
`, ``, "ledger", "TestMerge"},
	{"record: a silence takes the key back", "ledger/merge.go",
		`	e.Key = cmp.Or(e.Key, known.Key)
`, ``, "ledger", "TestMerge"},
	{"record: a finding that ended stays ended", "ledger/sql/save_findings.sql",
		`WHERE f.state = 'ended' OR f.observed IS DISTINCT FROM excluded.observed`, `WHERE f.observed IS DISTINCT FROM excluded.observed`, "ledger", "LivesOnce|OpensAgain"},
	{"record: what a person settled opens again", "ledger/sql/save_findings.sql",
		`WHERE f.state = 'ended' OR f.observed`, `WHERE f.state IN ('ended', 'settled') OR f.observed`, "ledger", "LivesOnce|EndedInARelease|Adopted|Accepting"},
	{"record: a finding's new words make it another version", "ledger/sql/save_findings.sql",
		`WHERE f.state = 'ended' OR f.observed IS DISTINCT FROM`, `WHERE true OR f.observed IS DISTINCT FROM`, "ledger", "LivesOnce|Finding"},
	{"record: a closed operation keeps its slot", "ledger/sql/conclude.sql",
		`slot = CASE WHEN r.state NOT IN ('succeeded', 'failed') THEN coalesce(o.slot, r.slot) END`, `slot = coalesce(o.slot, r.slot)`, "ledger", "ReleaseGrants|Slot|Closing"},
	{"record: a doubt grows younger", "ledger/sql/conclude.sql",
		`THEN coalesce(o.unknown_since, $2)`, `THEN $2`, "ledger", "KeepsItsAge"},
	{"record: the chain forgets what came before", "ledger/sql/conclude.sql",
		`sha256(o.chain_head || convert_to(r.body, 'UTF8'))`, `sha256(convert_to(r.body, 'UTF8'))`, "ledger", "B13"},
	{"record: what is due this very moment waits", "ledger/due.go",
		`NOT c.closed AND c.next_check <= $3`, `NOT c.closed AND c.next_check < $3`, "ledger", "TestDue|B30"},
	{"record: what is due last comes first", "ledger/due.go",
		`NOT c.closed AND c.next_check <= $3
	ORDER BY c.next_check, c.operation_id`, `NOT c.closed AND c.next_check <= $3
	ORDER BY c.next_check DESC, c.operation_id`, "ledger", "TestDue|B30"},
	{"record: evidence may be changed", "migrations/000001_create_ledger.sql",
		`looks_append_only BEFORE UPDATE OR DELETE OR TRUNCATE`, `looks_append_only BEFORE DELETE OR TRUNCATE`, "migrations", "Evidence"},
	{"record: a story may be cut", "migrations/000001_create_ledger.sql",
		`journal_append_only BEFORE UPDATE OR DELETE OR TRUNCATE`, `journal_append_only BEFORE UPDATE OR DELETE`, "migrations", "Evidence"},
	{"record: the database lets the closed be sent again", "migrations/000001_create_ledger.sql",
		`OLD.state = 'succeeded'     AND NEW.state = 'manual_review'`, `OLD.state = 'succeeded'     AND NEW.state IN ('manual_review', 'pending')`, "migrations", "Transitions"},
	{"run: a tick is run twice", "ledger/runs.go",
		`	if r.Tick == "" {
`, `	if r.Tick != "manual" {
`, "ledger", "Tick"},
	{"run: a live run is taken for dead", "ledger/runs.go",
		`r.finished_at IS NULL AND r.lease_until <= $2`, `r.finished_at IS NULL AND r.started_at <= $2`, "ledger", "PlaceToItself|DeadRun"},
}
