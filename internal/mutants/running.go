package main

// asking are faults in the sweep of open operations.
var asking = []mutant{
	{"sweep: a list that broke off answers for all", "sweep/ask.go",
		`l.Method == recon.ByList && l.Outcome != recon.Blind && l.Complete &&`, `l.Method == recon.ByList &&`, "sweep", "ListThatFailed"},
	{"sweep: what a list showed before it broke off is forgotten", "sweep/judge.go",
		`for _, l := range seers[m.Effect] {`, `for _, l := range seers[m.Effect][:0] {`, "sweep", "ShowedBeforeItFailed"},
	{"intake: a known effect is sought no sooner than others", "sweep/intake_tell.go",
		`		case unseen(c):
`, `		case unseen(c) && false:
`, "sweep", "AKnownEffectThatNobody"},
	{"sweep: a list answers before its lag is over", "sweep/ask.go",
		`l.Covers(c.Operation, c.Policy.Effect) && l.At.After(seen)`, `l.Covers(c.Operation, c.Policy.Effect) && !seen.IsZero()`, "sweep", "CouldShow"},
	{"sweep: a list answers for a known effect", "sweep/ask.go",
		`if c.Operation.EffectID != "" || slices`, `if slices`, "sweep", "WhoseIdIsKnown"},
	{"sweep: a source that is down is asked for all", "sweep/ask.go",
		`if len(batch) > 0 && !down(p.state) {`, `if len(batch) > 0 {`, "sweep", "Down|Outage"},
	{"sweep: the cap stops a batch too late", "sweep/open.go",
		`next > 0 && p.changed+next > limit`, `next > 0 && p.changed > limit`, "sweep", "Limit"},
	{"sweep: a release is not capped", "sweep/open.go",
		`d.To == recon.ManualReview || d.Release`, `d.To == recon.ManualReview`, "sweep", "ReleasesCount"},
	{"sweep: one blind answer makes a source down", "sweep/down.go",
		`return st.Blinds >= downAfter }`, `return st.Blinds >= downAfter-1 }`, "sweep", "Outage|Probe"},
	{"sweep: an operation without a next check is written", "sweep/ask.go",
		`if d.To.Open() && !d.Check.Next.After(now) {`, `if false {`, "sweep", "NextCheck"},
	{"sweep: an old reading hides a new one", "sweep/ask.go",
		`			if now, again := effects[e.Identity()]; again {`, `			if now, again := effects[e.Identity()]; again && false {`, "sweep", "TurnsBad|Truth|Reading"},
	{"sweep: an own mark is assumed", "sweep/ask.go",
		`m.Basis == basis && m.Certainty == recon.Proof && `, `(m.Basis == basis || m.Certainty == recon.Proof) && `, "sweep", "KeyWasNotSent"},
}

// auditing are faults in the audit and the comparison.
var auditing = []mutant{
	{"audit: complete means up to this moment", "sweep/audit_window.go",
		`sure := st.BeganAt.Add(-lag)`, `sure := st.BeganAt.Add(lag)`, "sweep", "LastCompletePoint|B19"},
	{"audit: a window in the past completes what lies between", "sweep/audit_window.go",
		`joins = !st.Window.From.After(st.CompleteTo)`, `joins = true`, "sweep", "LastCompletePoint"},
	{"audit: windows do not overlap", "sweep/audit_window.go",
		`h.last.Add(-max(overlap, h.reach))`, `h.last`, "sweep", "TheWindowOf"},
	{"audit: what is not visible yet is accounted for", "sweep/audit_window.go",
		`sure := h.now.Add(-h.lag).Truncate(time.Second)`, `sure := h.now.Truncate(time.Second)`, "sweep", "TheWindowOf"},
	{"audit: one complete list makes all complete", "sweep/audit_window.go",
		`if i == 0 || at.Before(earliest) {`, `if i == 0 || at.After(earliest) {`, "sweep", "LastCompletePoint|TheWindowOf"},
	{"audit: a known effect is sought by nobody", "sweep/audit_judge.go",
		`	return u.seek(ctx, list)
`, `	return nil
`, "sweep", "AnAuditIsTheFirst"},
	{"audit: a list that broke off is complete", "sweep/audit_list.go",
		`	if page.Next == "" && !r.gap {`, `	if !r.gap {`, "sweep", "B20"},
	{"audit: what could not be stored was seen", "sweep/audit_list.go",
		`	if len(recorded.LeftOut)+len(recorded.SetAside) > 0 {`, `	if false {`, "sweep", "CannotBeStored"},
	{"audit: a list that broke off goes on behind what could not be stored", "sweep/audit_list.go",
		`	st := r.place(r.state)`, `	st := r.state`, "sweep", "CannotBeStored"},
	{"sweep: what could not be stored is silent", "sweep/judge.go",
		`	p.shelf.back(h.seen, refused(recorded, b.Decisions))
`, ``, "sweep", "CannotBeStored"},
	{"sweep: what could not be stored was seen", "sweep/judge.go",
		`	if len(r.SetAside) > 0 || len(r.LeftOut) > 0 {`, `	if false {`, "sweep", "CannotBeStored"},
	{"audit: a list was made when it ended", "sweep/audit_list.go",
		`Window: r.state.Window, At: r.state.BeganAt,`, `Window: r.state.Window, At: r.options.Now(),`, "sweep", "B20"},
	{"audit: a list that cannot be read is not unseen", "sweep/audit_list.go",
		`	r.result.unseen(r.list, r.span.counted, why)
`, `	_ = why
`, "sweep", "B20"},
}

// receiving are faults in the inbox and in what verifies.
var receiving = []mutant{
	{"inbox: an event is acknowledged before the commit", "inbox/receive.go",
		`return fresh, err
}`, `return fresh, nil
}`, "inbox", "B05|Together|Repeat"},
	{"inbox: a commit need not reach the disk", "migrations/functions/receive_events.sql",
		`PERFORM reconciler.commit_surely();`, `NULL;`, "inbox", "WaitsForTheDisk"},
	{"inbox: a repeat is not counted", "migrations/functions/receive_events.sql",
		`SET deliveries = e.deliveries + excluded.deliveries`, `SET deliveries = e.deliveries`, "inbox", "B05"},
	{"inbox: a repeat is worked on again", "migrations/functions/receive_events.sql",
		`state = CASE WHEN excluded.signed > e.signed THEN excluded.state ELSE e.state END`, `state = excluded.state`, "inbox", "RepeatOfWhatIsOver"},
	{"inbox: an unsigned body replaces a signed one", "migrations/functions/receive_events.sql",
		`blob_id = CASE WHEN excluded.signed > e.signed THEN`, `blob_id = CASE WHEN true THEN`, "inbox", "B05|SignedEventReplaces"},
	{"inbox: an event that was taken is taken again", "inbox/sql/take.sql",
		`SET attempts = e.attempts + 1, next_try = $4,`, `SET attempts = e.attempts + 1, next_try = CASE WHEN $4::timestamptz IS NULL THEN $4 ELSE e.next_try END,`, "inbox", "TakenOnce"},
	{"inbox: an event is tried for ever", "inbox/take.go",
		`case e.Of.Attempt >= MaxAttempts:`, `case false:`, "inbox", "B52"},
	{"inbox: who took it last does not matter", "inbox/take.go",
		` AND e.attempts = r.attempt`, ` AND r.attempt > 0`, "inbox", "TakenOnce|KillsWhoever|SignedEventReplaces"},
	{"webhook: a signature is good for ever", "sources/stripe/event_verify.go",
		`off > s.tolerance || off < -s.tolerance`, `off > 1000*s.tolerance || off < -1000*s.tolerance`, "sources/stripe", "B99"},
	{"webhook: a signature from the future is good", "sources/stripe/event_verify.go",
		`off > s.tolerance || off < -s.tolerance`, `off > s.tolerance`, "sources/stripe", "B99"},
	{"webhook: no secret is needed", "sources/stripe/event_verify.go",
		`	return errors.New("no signature was made with a secret`, `	if len(body) > 0 {
		return nil
	}
	return errors.New("no signature was made with a secret`, "sources/stripe", "RightSignature"},
}

// telling are faults in who is told of what, and when.
var telling = []mutant{
	{"tell: a step is told twice", "escalation/plan.go",
		`		if toldFrom(all[i:], told, r.To) {
			continue
		}
`, ``, "escalation", "PlannedWithAReason|TestALadder"},
	{"tell: a step comes a moment late", "escalation/plan.go",
		`if now.Before(r.at) || done[r.To] {`, `if !now.After(r.at) || done[r.To] {`, "escalation", "EachFinding"},
	{"tell: what somebody put off is told", "escalation/plan.go",
		`case now.Before(a.PausedUntil):`, `case now.After(a.PausedUntil):`, "escalation", "EachFinding"},
	{"tell: who was overtaken is not called", "escalation/plan.go",
		`				n.Mention = append(n.Mention, e.Mention)
`, ``, "escalation", "EachFinding"},
	{"tell: the end of a finding is not shown", "escalation/plan.go",
		`if a.Planned != a.Finding.Version || len(t.Notices) > 0 {`, `if a.Planned == a.Finding.Version || len(t.Notices) > 0 {`, "escalation", "EachFinding"},
	{"tell: the step before the key's end comes after it", "escalation/plan.go",
		`c.expires.Add(-s.BeforeKeyExpiry)`, `c.expires.Add(s.BeforeKeyExpiry)`, "escalation", "EachFinding"},
	{"tell: the gravest is told last", "escalation/plan.go",
		`cmp.Compare(a.Fingerprint(), b.Fingerprint())) < 0`, `cmp.Compare(a.Fingerprint(), b.Fingerprint())) > 0`, "escalation", "EachFinding|OrderOfFindings|Graver"},
	{"tell: an outage is many messages", "escalation/incident.go",
		`c.Kind == recon.FindUnresolved && (c.Down || c.DownIncident != "")`, `false`, "escalation", "WhichCrowds"},
	{"tell: a crowd folds one too late", "escalation/incident.go",
		`case c.Count >= p.foldAt():`, `case c.Count > p.foldAt():`, "escalation", "WhichCrowds"},
	{"tell: a refusal is taken for delivered", "escalation/retry.go",
		`	case Refused, Gone:
		wait, o.result, o.delivery.Undelivered = mendedEvery, Undelivered, true`, `	case Refused, Gone:
		wait, o.result, o.delivery.Undelivered = mendedEvery, Undelivered, false`, "escalation", "AFailureSays"},
	{"tell: a lost answer leaves no doubt", "escalation/retry.go",
		`Doubt: n.Doubt || kind == Lost,`, `Doubt: n.Doubt,`, "escalation", "AFailureSays"},
	{"tell: a destination's wait is ignored", "escalation/retry.go",
		`wait = min(max(after, time.Second), retryAfterMax)`, `wait = min(max(after, time.Second), time.Second)`, "escalation", "AFailureSays|RetryAfter"},
	{"sweep: a window is seen before all that it showed is stored", "sweep/judge.go",
		`if p.shelf.empty() {
		b.Coverage, p.covered`, `if true {
		b.Coverage, p.covered`, "sweep", "ARunThatDiesLeaves"},
	{"tell: a notice is claimed by two", "ledger/notices.go",
		`
	AND (n.claimed_until IS NULL OR n.claimed_until <= $3)`, ` AND $3 <= $4`, "ledger", "ClaimedByOne"},
	{"tell: a step runs ahead of its message", "ledger/sql/due_notices.sql",
		`AND (e.planned_at, e.notice_id) < (n.planned_at, n.notice_id)`, `AND false`, "ledger", "StepWaits"},
}
