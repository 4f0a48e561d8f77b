package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// What people do carries no rule of its own here: the two SQL functions hold them all,
// and the database's roles say who may call which.
const (
	actSQL     = `SELECT reconciler.act($1::jsonb)`
	approveSQL = `SELECT reconciler.approve($1::jsonb)`
)

// PersonAction is one thing that a person does with a finding.
type PersonAction struct {
	Finding string // its id
	Verb    recon.Verb
	// Version is that of the finding which the person looked at; another one is answered
	// [ChangedMeanwhile]. 0: whatever it is now.
	Version int64
	Reason  string // in their own words; needed to settle
	// Key makes the same action told again the same one: a click's message, action and
	// user. Empty: a new one.
	Key string
	// Person is who acts, where this process authenticated them; only the daemon's role
	// may say it. Empty: the database role that logged in.
	Person string
	Via    string // by which way they came: "command line", "slack"

	Until    time.Time // of acknowledge (zero: four hours) and snooze
	Assignee string

	Effect    string            // the effect's id, for happened, adopt and ignore
	Operation recon.OperationID // which one, where the finding does not say it
	Action    string            // of an operation that adopt makes, where several fit
	// Seen is what a look for Effect brought just now; nil: nobody looked.
	Seen *Seen
	// Mismatch is the finding that the effect would be on the operation. It is settled
	// together with the decision of two people to take it all the same; nil: it is equal.
	Mismatch *recon.Finding
}

// Seen is the answer to a look for one effect by its id.
type Seen struct {
	Look   recon.Look
	Effect *recon.Effect // nil: it was not found
}

// PersonOutcome is what became of a person's action.
type PersonOutcome string

const (
	PersonDone     PersonOutcome = "done"
	PersonProposed PersonOutcome = "proposed" // a second, other person must say the same
	// ChangedMeanwhile: the finding is no longer what the person looked at.
	ChangedMeanwhile PersonOutcome = "changed_meanwhile"
	PersonRefused    PersonOutcome = "refused"
)

// PersonAnswer is what a person is told. Reason and Next are sentences for people, set
// where the action was refused or the finding has changed.
type PersonAnswer struct {
	Outcome        PersonOutcome      `json:"outcome"`
	Finding        string             `json:"finding_id"`
	Version        int64              `json:"version"`
	State          recon.FindingState `json:"state"`
	Person         string             `json:"person"`
	Reason         string             `json:"reason,omitempty"`
	Next           string             `json:"next,omitempty"`
	Two            string             `json:"two,omitempty"` // why it is a proposal, or was one
	ProposedBy     string             `json:"proposed_by,omitempty"`
	Operation      recon.OperationID  `json:"operation_id,omitempty"`
	OperationState recon.State        `json:"operation_state,omitempty"`
	Effect         string             `json:"effect_id,omitempty"`
	Made           recon.OperationID  `json:"made,omitempty"` // the operation that adopt made
	Assignee       string             `json:"assignee,omitempty"`
	Until          *time.Time         `json:"until,omitempty"`
	Repeated       bool               `json:"repeated,omitempty"` // told before; nothing was done twice
}

// personRow is the input of the two functions.
type personRow struct {
	Finding   string      `json:"finding_id"`
	Verb      recon.Verb  `json:"verb"`
	Version   int64       `json:"version,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Key       string      `json:"action_key"`
	Person    string      `json:"person,omitempty"`
	Via       string      `json:"via,omitempty"`
	Until     *time.Time  `json:"until,omitempty"`
	Assignee  string      `json:"assignee,omitempty"`
	Effect    string      `json:"effect_id,omitempty"`
	Operation string      `json:"operation_id,omitempty"`
	Action    string      `json:"action,omitempty"`
	Look      *lookRow    `json:"look,omitempty"`
	Seen      *effectRow  `json:"effect,omitempty"`
	Mismatch  *findingRow `json:"mismatch,omitempty"`
}

// RoleError says that whoever logged in at the database may not do it.
type RoleError struct {
	Verb  recon.Verb
	Needs string // the group role that may
	Text  string // what the database says; empty: it does not let them call the function
}

func (e *RoleError) Error() string {
	if e.Text != "" {
		return string(e.Verb) + ": " + e.Text
	}
	return fmt.Sprintf("%s: the database role may not do this: whoever administers the database grants it %s", e.Verb, e.Needs)
}

// Person does what a person wants done with a finding, or says why not. Input that the
// ledger refuses is a *UsageError; who may not do it is told by a *RoleError.
func (l *Ledger) Person(ctx context.Context, a PersonAction) (PersonAnswer, error) {
	row, err := a.row()
	if err != nil {
		return PersonAnswer{}, err
	}
	sql, needs := actSQL, "reconciler_operator"
	if a.Verb.Settles() || a.Verb == recon.Reject {
		sql, needs = approveSQL, "reconciler_approver"
	}
	answer, err := act[PersonAnswer](ctx, l, string(a.Verb)+" finding "+a.Finding, sql, row)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		refused := &RoleError{Verb: a.Verb, Needs: needs}
		if pg.Hint != "" {
			refused.Text = pg.Message + ". " + pg.Hint
		}
		return answer, refused
	}
	return answer, err
}

func (a PersonAction) row() (personRow, error) {
	r := personRow{
		Finding: a.Finding, Verb: a.Verb, Version: a.Version, Reason: a.Reason, Key: a.Key, Person: a.Person, Via: a.Via,
		Until: orNull(a.Until), Assignee: a.Assignee, Effect: a.Effect, Operation: string(a.Operation), Action: a.Action,
	}
	if r.Key == "" { // a lost answer is asked for again under it
		id, err := uuid.NewV7()
		if err != nil {
			return r, err
		}
		r.Key = id.String()
	}
	if a.Seen != nil {
		look := lookRowOf(a.Seen.Look)
		r.Look = &look
		if a.Seen.Effect != nil {
			effect := rowOf(*a.Seen.Effect)
			r.Seen = &effect
		}
	}
	if a.Mismatch == nil {
		return r, nil
	}
	mismatch, err := findingRowOf(*a.Mismatch, a.Mismatch.Fingerprint())
	r.Mismatch = &mismatch
	return r, err
}

// People is who may act, and above which amounts two people must agree.
type People struct {
	People []Person `json:"people"`
	// ApproveAbove is in minor units, by currency; a currency that is not named has no
	// limit.
	ApproveAbove map[string]int64 `json:"approve_above"`
}

// Person is one account of somebody. The same name on several accounts is one person,
// who never approves what they proposed themselves.
type Person struct {
	Name   string `json:"name"`
	Role   string `json:"role,omitempty"`    // viewer, operator, approver
	Slack  string `json:"slack,omitempty"`   // TEAM/USER
	DBRole string `json:"db_role,omitempty"` // role of the database
}

// BySlack gives the person behind a Slack account, "TEAM/USER", and false where it is
// nobody's.
func (p People) BySlack(account string) (Person, bool) {
	for _, person := range p.People {
		if account != "" && person.Slack == account {
			return person, true
		}
	}
	return Person{}, false
}

const (
	peopleSQL = `SELECT p.body FROM reconciler.people p WHERE p.tenant = $1`

	applyPeopleSQL = `
INSERT INTO reconciler.people AS p (tenant, body, applied_at) VALUES ($1, $2::jsonb, $3)
ON CONFLICT (tenant) DO UPDATE SET body = excluded.body, applied_at = excluded.applied_at
WHERE p.body IS DISTINCT FROM excluded.body`
)

// People gives the list in force.
func (l *Ledger) People(ctx context.Context) (People, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var p People
	var body []byte
	err := l.pool.QueryRow(ctx, peopleSQL, l.tenant).Scan(&body)
	if isNoRows(err) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	return p, l.fault("read the list of people", err)
}

// ApplyPeople makes this list the one in force. It writes nothing where it is already.
func (l *Ledger) ApplyPeople(ctx context.Context, p People, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	p.People = emptyList(p.People)
	if p.ApproveAbove == nil {
		p.ApproveAbove = map[string]int64{}
	}
	body, err := encode(p)
	if err != nil {
		return err
	}
	_, err = l.pool.Exec(ctx, applyPeopleSQL, l.tenant, string(body), stored(now))
	return l.fault("store the list of people", err)
}

// The rows are few: those that somebody put off.
const wakeFindingsSQL = `
UPDATE reconciler.findings f
SET state = 'open', acknowledged_until = NULL, snoozed_until = NULL, version = f.version + 1
WHERE f.tenant = $1 AND f.state IN ('acknowledged', 'snoozed') AND coalesce(f.snoozed_until, f.acknowledged_until) <= $2`

// WakeFindings opens what was acknowledged or put off and whose time is over, and gives
// their number.
func (l *Ledger) WakeFindings(ctx context.Context, now time.Time) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tag, err := l.pool.Exec(ctx, wakeFindingsSQL, l.tenant, stored(now))
	return int(tag.RowsAffected()), l.fault("wake findings", err)
}
