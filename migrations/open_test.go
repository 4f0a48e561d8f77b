package migrations_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestOpenRecordsTheIntentBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	got := a.open(object{"currency": "eur", "metadata": object{"f": 1.5}, "agent": "returns"})
	id := got.text("operation_id")
	for name, u := range map[string]string{"operation_id": id, "key": got.text("key")} {
		if v, err := uuid.Parse(u); err != nil || v.Version() != 7 || v.Variant() != uuid.RFC4122 {
			t.Errorf("%s %q is no UUIDv7", name, u)
		} else if sec, nsec := v.Time().UnixTime(); !time.Unix(sec, nsec).Truncate(time.Millisecond).Equal(start) {
			t.Errorf("%s %q was made at %v, want the ledger's clock", name, u, time.Unix(sec, nsec))
		}
	}
	want := object{"operation_id": id, "key": got["key"], "state": "pending", "verdict": "new",
		"already": map[string]any{"succeeded": 0.0, "open": 0.0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	for column, want := range map[string]string{
		"source": "stripe-main", "account": "acct_1", "mode": "live", "currency": "EUR", "amount": "4200",
		"request": `{"amount":4200,"charge":"ch_A"}`, "metadata": `{"f": 1.5}`, "agent": "returns", "slot": "null",
		"marks": "{key,reference}", "sent_at": "null", "version": "1", "chain_seq": "1", "policy_version": "1",
	} {
		if got := a.row(id, column); got != want {
			t.Errorf("%s is %s, want %s", column, got, want)
		}
	}
	if got, want := a.nextCheck(id), start.Add(15*time.Minute); !got.Equal(want) {
		t.Errorf("next check at %v, want %v: when a pending one is stale", got, want)
	}
	a.checkChains()
}

func TestOpenAgainAnswersWithTheSameOperation(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	p := policy()
	p.ResultFields = []string{"id"}
	a.policy(p)
	first := a.open(object{"key": "k-1", "id": "op-1"})
	for name, changes := range map[string]object{
		"by key":              {"key": "k-1"},
		"by key and id":       {"key": "k-1", "id": "op-1"},
		"by id alone":         {"id": "op-1"},
		"by key, another id":  {"key": "k-1", "id": "op-new"},
		"with its defaults":   {"key": "k-1", "account": "acct_1", "mode": "live"},
		"other marks":         {"key": "k-1", "metadata": object{"x": 1}, "agent": "other", "run": "r", "reference": "n"},
		"request reordered":   {"key": "k-1", "request": object{"amount": 4200, "charge": "ch_A"}},
		"currency lower case": {"key": "k-1", "currency": "eur"},
	} {
		got := a.open(changes)
		if got["verdict"] != "existing" || got["operation_id"] != "op-1" || got["key"] != "k-1" {
			t.Errorf("%s: %v, want existing", name, got)
		}
	}
	for name, changes := range map[string]object{
		"another amount":             {"key": "k-1", "amount": 4201},
		"another request":            {"key": "k-1", "request": object{}},
		"another target":             {"key": "k-1", "target": "order:2"},
		"another parent":             {"key": "k-1", "parent": nil},
		"another currency":           {"key": "k-1", "currency": "USD"},
		"another account":            {"key": "k-1", "account": "acct_9"},
		"another mode":               {"key": "k-1", "mode": "test"},
		"by id, another amount":      {"id": "op-1", "amount": 1},
		"known id, another key":      {"id": "op-1", "key": "k-2"},
		"case and white space count": {"key": "k-1", "target": "order:1 "},
	} {
		got := a.open(changes)
		if got["verdict"] != "conflict" || got["operation_id"] != "op-1" || got.text("reason") == "" {
			t.Errorf("%s: %v, want conflict", name, got)
		}
	}
	a.open(object{"key": "k-3", "id": "op-3"})
	if got := a.open(object{"key": "k-1", "id": "op-3"}); got["verdict"] != "conflict" {
		t.Errorf("id and key of two operations: %v, want conflict", got)
	}
	if got := a.row("op-1", "version"); got != "1" {
		t.Errorf("opening again changed the row to version %s", got)
	}
	a.attempt("op-1", "succeeded", object{"effect_id": "re_1", "result": object{"id": "re_1", "card": "4242"}})
	got := a.open(object{"key": "k-1"})
	want := first.with(object{"verdict": "existing", "state": "succeeded", "result": map[string]any{"id": "re_1"},
		"already": map[string]any{"succeeded": 0.0, "open": 4200.0}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after success (-want +got):\n%s", diff)
	}
}

func TestOpenDerivesTheKeyOfACaseAndStep(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	p := policy()
	p.Action = "create_payment"
	a.policy(p)
	in := object{"action": "create_payment", "target": "payee:SUP-2291", "case": "claim-88213", "step": 1}
	got := a.open(in)
	if want := "066b0eba88c1013dd138b4d1f8c16425caa41378"; got["key"] != want {
		t.Errorf("key %v, want %s", got["key"], want)
	}
	if again := a.open(in); again["verdict"] != "existing" || again["operation_id"] != got["operation_id"] {
		t.Errorf("the same case and step: %v, want existing", again)
	}
	if second := a.open(in.with(object{"step": 2})); second["verdict"] != "new" {
		t.Errorf("the next step: %v, want new", second)
	}
}

func TestB15_AStableKeyOfAReplayedToolCallIsOneOperation(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	call := object{"key": "run_7/call_3", "run": "run_7", "tool_call": "call_3"}
	first := a.open(call)
	a.attempt(first.text("operation_id"), "succeeded", object{"effect_id": "re_1"})
	a.advance(181 * time.Second)
	again := a.open(call)
	if again["verdict"] != "existing" || again["state"] != "succeeded" || again["operation_id"] != first["operation_id"] {
		t.Errorf("the replay: %v, want the finished operation", again)
	}
	if c := a.claim(first.text("operation_id"), nil); c["claimed"] != false || c["verdict"] != "succeeded" || c["final"] != true {
		t.Errorf("claim by the replay: %v, want no second send", c)
	}
	// A key that changed makes a second operation; run and tool call are kept, by which
	// both are found together.
	changed := a.open(call.with(object{"key": "run_7/call_3#2"}))
	if changed["verdict"] != "new" || a.row(changed.text("operation_id"), "tool_call") != "call_3" {
		t.Errorf("a changed key: %v, want a new operation with its run and tool call", changed)
	}
}

func TestB17_FiftyOpensOfOneIntentMakeOneOperation(t *testing.T) {
	t.Parallel()
	oneOpen := policy()
	oneOpen.OneOpen = true
	for name, c := range map[string]struct {
		policy recon.Policy
		in     object
		loser  string
	}{
		"same key":              {policy(), object{"key": "wf10-req-88"}, "existing"},
		"same id":               {policy(), object{"id": "op_1110"}, "existing"},
		"same case and step":    {policy(), object{"case": "c", "step": 1}, "existing"},
		"slot, keys of its own": {oneOpen, object{}, "open_elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			a.policy(c.policy)
			const callers = 50
			answers := make([]object, callers)
			faults := make([]error, callers)
			gate := make(chan struct{})
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					<-gate
					answers[i], faults[i] = a.try("open_operation", refund.with(c.in))
				})
			}
			close(gate)
			wg.Wait()
			verdicts, ids := map[any]int{}, map[any]bool{}
			for i, answer := range answers {
				if faults[i] != nil {
					t.Fatal(faults[i])
				}
				verdicts[answer["verdict"]]++
				ids[answer["operation_id"]] = true
			}
			if diff := cmp.Diff(map[any]int{"new": 1, c.loser: callers - 1}, verdicts); diff != "" || len(ids) != 1 {
				t.Errorf("%d operations; verdicts (-want +got):\n%s", len(ids), diff)
			}
			var rows, claimed int
			scan(t, a.pool, `SELECT count(*) FROM reconciler.operations`, &rows)
			if rows != 1 {
				t.Errorf("%d rows", rows)
			}
			for i := range callers {
				wg.Go(func() {
					out, err := a.try("claim_operation", object{"operation_id": answers[i]["operation_id"], "holder": fmt.Sprint(i)})
					answers[i], faults[i] = out, err
				})
			}
			wg.Wait()
			for i, answer := range answers {
				if faults[i] != nil {
					t.Fatal(faults[i])
				}
				if answer["claimed"] == true {
					claimed++
				}
			}
			if claimed != 1 {
				t.Errorf("%d of %d callers may send", claimed, callers)
			}
		})
	}
}

func TestOpenWaitsForARacingTransactionAndSeesHowItEnded(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"the other commits": true, "the other rolls back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			a.policy(policy())
			tx, err := a.pool.Begin(t.Context())
			must(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			first, err := call(t, tx, "open_operation", refund.with(object{"key": "k"}))
			must(t, err)
			second := make(chan object, 1)
			go func() {
				out, err := a.try("open_operation", refund.with(object{"key": "k"}))
				if err != nil {
					out = object{"error": err.Error()}
				}
				second <- out
			}()
			waitUntilBlocked(t, a)
			if commit {
				must(t, tx.Commit(t.Context()))
			} else {
				must(t, tx.Rollback(t.Context()))
			}
			got := <-second
			want := map[bool]string{true: "existing", false: "new"}[commit]
			if got["verdict"] != want || (got["operation_id"] == first["operation_id"]) != commit {
				t.Errorf("the loser got %v, want %s", got, want)
			}
		})
	}
}

func waitUntilBlocked(t *testing.T, a actor) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var blocked bool
		scan(t, a.pool, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)`, &blocked)
		if blocked {
			return
		}
	}
	t.Fatal("nobody waits")
}

func TestOneOpenAllowsOneOpenOperationOfAKind(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	p := policy()
	p.OneOpen = true
	a.policy(p)
	first := a.open(object{"key": "k-1"}).text("operation_id")
	if got := a.open(object{"key": "k-2"}); got["verdict"] != "open_elsewhere" || got["operation_id"] != first {
		t.Errorf("an equal one: %v, want open_elsewhere", got)
	}
	if got := a.open(object{"key": "k-1"}); got["verdict"] != "existing" {
		t.Errorf("its own key: %v, want existing", got)
	}
	for name, changes := range map[string]object{
		"another target": {"target": "order:2"}, "another amount": {"amount": 1}, "another currency": {"currency": "USD"},
		"no amount": {"amount": nil, "currency": nil},
	} {
		if got := a.open(changes); got["verdict"] != "new" {
			t.Errorf("%s: %v, want new", name, got)
		}
	}
	if got := a.open(object{"amount": nil, "currency": nil}); got["verdict"] != "open_elsewhere" {
		t.Errorf("no amount again: %v, want open_elsewhere: absent equals absent", got)
	}
	a.attempt(first, "indeterminate", nil)
	if got := a.open(object{"key": "k-2"}); got["verdict"] != "open_elsewhere" || got["state"] != "unknown" {
		t.Errorf("while the outcome is unknown: %v, want open_elsewhere", got)
	}
	a.advance(time.Minute)
	a.attempt(first, "succeeded", object{"effect_id": "re_1"})
	second := a.open(object{"key": "k-2"})
	if second["verdict"] != "new" {
		t.Errorf("after success: %v, want new", second)
	}
	if diff := cmp.Diff(map[string]any{"succeeded": 4200.0, "open": 1.0}, second["already"]); diff != "" {
		t.Errorf("already (-want +got):\n%s", diff)
	}
	a.attempt(second.text("operation_id"), "refused", object{"error_code": "charge_already_refunded"})
	if got := a.open(object{"key": "k-3"}); got["verdict"] != "new" {
		t.Errorf("after a definite failure: %v, want new", got)
	}
}

func TestAlreadyCountsWhatIsDoneAndOpenForTheTarget(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	open := func(amount int) string { return a.open(object{"amount": amount}).text("operation_id") }
	a.attempt(open(1), "succeeded", object{"effect_id": "re_1"})
	a.attempt(open(10), "refused", nil)
	a.attempt(open(100), "indeterminate", nil)
	open(1000)
	a.open(object{"amount": 10000, "currency": "USD"})
	a.open(object{"amount": 10000, "target": "order:2"})
	got := a.open(object{"amount": 5})
	if diff := cmp.Diff(map[string]any{"succeeded": 1.0, "open": 1100.0}, got["already"]); diff != "" {
		t.Errorf("already (-want +got):\n%s", diff)
	}
}

func TestDefaultsOfAccountAndMode(t *testing.T) {
	t.Parallel()
	account := func(account, mode string) recon.Account { return recon.Account{Account: account, Mode: mode} }
	for name, c := range map[string]struct {
		accounts []recon.Account
		given    object
		want     [2]string
	}{
		"a source without accounts":             {nil, nil, [2]string{"default", "live"}},
		"the only one":                          {[]recon.Account{account("acct_1", "live")}, nil, [2]string{"acct_1", "live"}},
		"the only one is for tests":             {[]recon.Account{account("acct_1", "test")}, nil, [2]string{"acct_1", "test"}},
		"one account in both modes":             {[]recon.Account{account("a", "test"), account("a", "live")}, nil, [2]string{"a", "live"}},
		"of several none is guessed":            {[]recon.Account{account("a", "live"), account("b", "live")}, nil, [2]string{"null", "live"}},
		"the only mode of the given account":    {[]recon.Account{account("a", "live"), account("b", "test")}, object{"account": "b"}, [2]string{"b", "test"}},
		"given ones stand, known or not":        {[]recon.Account{account("a", "live")}, object{"account": "x", "mode": "y"}, [2]string{"x", "y"}},
		"an account that the source has not":    {[]recon.Account{account("a", "test")}, object{"account": "x"}, [2]string{"x", "live"}},
		"several accounts, all of them in test": {[]recon.Account{account("a", "test"), account("b", "test")}, nil, [2]string{"null", "test"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			p := policy()
			p.Accounts = c.accounts
			a.policy(p)
			id := a.open(c.given).text("operation_id")
			if got := [2]string{a.row(id, "account"), a.row(id, "mode")}; got != c.want {
				t.Errorf("account and mode %v, want %v", got, c.want)
			}
		})
	}
}

func TestTheFunctionsRunInReadCommittedOnly(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		for function, in := range map[string]object{
			"open_operation":  refund,
			"claim_operation": {"operation_id": "x", "holder": "w"},
			"finish_attempt":  {"operation_id": "x", "token": "t", "class": "refused"},
		} {
			tx, err := a.pool.Begin(t.Context())
			must(t, err)
			exec(t, tx, "SET TRANSACTION ISOLATION LEVEL "+level)
			_, err = call(t, tx, function, in)
			refused(t, err, "40001")
			must(t, tx.Rollback(t.Context()))
		}
	}
}

func TestNothingIsSentOnTheStrengthOfACommitThatACrashCanLose(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(nil).text("operation_id")
	for set, want := range map[string]string{"off": "on", "local": "on", "on": "on", "remote_apply": "remote_apply"} {
		for function, in := range map[string]object{
			"open_operation":  refund,
			"claim_operation": {"operation_id": id, "holder": "w"},
		} {
			tx, err := a.pool.Begin(t.Context())
			must(t, err)
			exec(t, tx, "SET LOCAL synchronous_commit = "+set)
			_, err = call(t, tx, function, in)
			must(t, err)
			var got string
			scan(t, tx, "SHOW synchronous_commit", &got)
			if got != want {
				t.Errorf("%s under %s leaves synchronous_commit %s, want %s", function, set, got, want)
			}
			must(t, tx.Rollback(t.Context()))
		}
	}
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a := actor{t: t, pool: pool(t, url)}
	a.policy(policy())
	a.open(object{"key": "k", "id": "op"})
	conn := connect(t, url)
	exec(t, conn, `SET reconciler.tenant = 'north'`)
	got, err := call(t, conn, "open_operation", refund.with(object{"key": "k", "id": "op"}))
	must(t, err)
	if got["verdict"] != "rejected" {
		t.Errorf("another tenant's policy served: %v", got)
	}
	exec(t, conn, `INSERT INTO reconciler.policies (tenant, action, version, body, created_at)
		SELECT 'north', action, version, body, created_at FROM reconciler.policies`)
	got, err = call(t, conn, "open_operation", refund.with(object{"key": "k", "id": "op"}))
	must(t, err)
	if got["verdict"] != "new" {
		t.Errorf("another tenant's key was met: %v", got)
	}
	exec(t, conn, `SET reconciler.tenant = ''`)
	got, err = call(t, conn, "open_operation", refund.with(object{"key": "k", "id": "op"}))
	must(t, err)
	if got["verdict"] != "existing" {
		t.Errorf("an empty tenant is not the default one: %v", got)
	}
}

func TestKeysAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	seen := map[any]bool{}
	for _, key := range []string{"K", "k", " k", "k ", "é", "e\u0301", "k\u200b", "k\t"} {
		got := a.open(object{"key": key})
		if got["verdict"] != "new" || seen[got["operation_id"]] || !bytes.Equal([]byte(got.text("key")), []byte(key)) {
			t.Errorf("key %q: %v, want an operation of its own", key, got)
		}
		seen[got["operation_id"]] = true
	}
}
