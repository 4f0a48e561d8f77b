package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
)

// What the shop's own orders say is evidence beside the provider's, and a finding where it
// disagrees; it closes nothing, and nothing waits for it.
func TestALocalWitnessIsHeardAndClosesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Witness = "orders" })
	url := pgtest.EmptyURL(t)
	shop, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.Close)
	exec := func(sql string) {
		t.Helper()
		if _, err := shop.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE orders (id text PRIMARY KEY, status text)`)
	exec(`INSERT INTO orders VALUES ('op_0001', 'paid'), ('op_0002', 'refunded')`)
	source, err := sqldb.New("shop", sqldb.Settings{URL: recon.NewSecret(url), Witnesses: []sqldb.WitnessSettings{{
		Name: "orders", Table: "orders", Prefix: "order:", Columns: sqldb.WitnessColumnSettings{Target: "id", Status: "status"},
		Says: map[string]string{"refunded": "done", "paid": "not_done"},
	}}}, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.sweep.Witnesses = map[string]sources.Witness{"orders": source}
	done, open := refund(1), refund(2)
	s.happen(done, s.lose(done))
	s.lose(open)
	s.pass(20 * time.Minute)
	if out := s.run(); out.Succeeded != 1 || out.Kept != 1 {
		t.Fatalf("outcome %+v", out)
	}
	// The order of what was done is not marked yet: that is no news so soon.
	story := s.wantState(done, recon.Succeeded)
	if len(story.Findings) != 0 || !testified(story, "paid") {
		t.Errorf("findings %+v, looks %+v; want the witness among the evidence", story.Findings, story.Looks)
	}
	// An order that says refunded closes nothing where the provider shows none.
	story = s.wantState(open, recon.Unknown)
	if len(story.Findings) != 1 || !strings.HasSuffix(story.Findings[0].Reason, "The witness orders says of order:op_0002: refunded.") || !testified(story, "refunded") {
		t.Errorf("findings are %+v", story.Findings)
	}
	reverify := func() recon.Story {
		t.Helper()
		s.pass(30 * time.Hour)
		if _, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
			t.Fatal(err)
		}
		return s.wantState(done, recon.Succeeded)
	}
	story = reverify()
	if len(story.Findings) != 1 || story.Findings[0].Kind != recon.FindMismatch || !story.Findings[0].Open() {
		t.Fatalf("findings are %+v, want a mismatch with the witness", story.Findings)
	}
	// A witness that is away ends nothing, and keeps nothing from being judged.
	exec(`ALTER TABLE orders RENAME TO away`)
	s.pass(7 * 24 * time.Hour)
	if story = reverify(); !story.Findings[0].Open() {
		t.Error("a witness that could not be asked ended the finding")
	}
	exec(`ALTER TABLE away RENAME TO orders`)
	exec(`UPDATE orders SET status = 'refunded'`)
	s.pass(30 * 24 * time.Hour)
	if story = reverify(); story.Findings[0].Open() {
		t.Error("the order is marked, and the finding stays open")
	}
	if question, answer := lastTestimony(story); question != "asked the witness orders about order:op_0001" || answer != "refunded" {
		t.Errorf("told as %q: %q", question, answer)
	}
}

func testified(s recon.Story, detail string) bool {
	for _, l := range s.Looks {
		if l.IsTestimony() && l.Source == "shop" && l.Detail == detail {
			return true
		}
	}
	return false
}

// lastTestimony is how the last look at a witness is told to people.
func lastTestimony(s recon.Story) (question, answer string) {
	for _, l := range s.Looks {
		if l.IsTestimony() {
			question, answer = s.Question(l), s.Answer(l)
		}
	}
	return question, answer
}

// One order that nobody understands keeps the orders of later batches from nothing.
func TestAWitnessWithOneOddObjectIsAskedForOthers(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.Witness = "orders" })
	s.sweep.batch = 1
	url := pgtest.EmptyURL(t)
	shop, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.Close)
	if _, err := shop.Exec(t.Context(), `CREATE TABLE orders (id text PRIMARY KEY, status text);
		INSERT INTO orders VALUES ('op_0001', 'odd'), ('op_0002', 'refunded'), ('op_0003', 'odd')`); err != nil {
		t.Fatal(err)
	}
	source, err := sqldb.New("shop", sqldb.Settings{URL: recon.NewSecret(url), Witnesses: []sqldb.WitnessSettings{{
		Name: "orders", Table: "orders", Prefix: "order:", Columns: sqldb.WitnessColumnSettings{Target: "id", Status: "status"},
		Says: map[string]string{"refunded": "done"},
	}}}, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.sweep.Witnesses = map[string]sources.Witness{"orders": source}
	for n := 1; n <= 3; n++ { // whichever is looked at first
		i := refund(n)
		s.happen(i, s.lose(i))
	}
	s.pass(20 * time.Minute)
	if out := s.run(); out.Succeeded != 3 {
		t.Fatalf("outcome %+v", out)
	}
	if story := s.wantState(refund(2), recon.Succeeded); !testified(story, "refunded") {
		t.Errorf("looks are %+v, want what the order says", story.Looks)
	}
}
