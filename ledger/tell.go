package ledger

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// blindsOfDown is how many blind answers in a row make a source down, as for sweeps.
	blindsOfDown = 2
	// topMembers is how many findings of an incident are named.
	topMembers = 10
)

const passOverSQL = `
WITH folded AS (
	SELECT f.finding_id
	FROM reconciler.findings f
	WHERE f.tenant = $1 AND f.planned_version <> f.version AND f.incident_id IS NOT NULL
		AND NOT EXISTS (SELECT FROM reconciler.notices n
			WHERE n.tenant = $1 AND n.subject = f.finding_id AND n.opening = f.openings)
	ORDER BY f.fingerprint
	FOR NO KEY UPDATE OF f
)
UPDATE reconciler.findings f SET planned_version = f.version, plan_at = NULL
FROM folded x WHERE f.tenant = $1 AND f.finding_id = x.finding_id`

// PassOverFolded marks as planned what changed and is told by its incident alone, at
// once for all of it: after an outage thousands end together.
func (l *Ledger) PassOverFolded(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := l.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, passOverSQL, l.tenant)
		return err
	})
	return l.fault("pass over findings of incidents", err)
}

//go:embed sql/crowds.sql
var crowdsSQL string

// Crowds counts, by source and kind, the findings that wait to be told for the first
// time, together with those that were opened after since.
func (l *Ledger) Crowds(ctx context.Context, now, since time.Time) ([]recon.Crowd, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	scan := func(row pgx.CollectableRow) (c recon.Crowd, err error) {
		return c, row.Scan(text(&c.Source), text(&c.Kind), number(&c.Count), &c.Down, text(&c.Incident), instant(&c.Joined), text(&c.DownIncident))
	}
	crowds, err := collect(ctx, l.pool, scan, crowdsSQL, l.tenant, stored(now), stored(since), blindsOfDown, string(recon.FindBlind))
	return crowds, l.fault("count findings to tell", err)
}

//go:embed sql/fold.sql
var foldSQL string

// Fold takes the findings of a crowd into one incident, which is made where none takes
// in, and says how many were taken. The incident is planned again at a time.
func (l *Ledger) Fold(ctx context.Context, f recon.Fold, now, since, plan time.Time) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	id, err := uuid.NewV7()
	if err != nil {
		return 0, err
	}
	var incident string
	var taken int
	err = l.pool.QueryRow(ctx, foldSQL, l.tenant, stored(now), id.String(), string(f.Source), string(f.Kind), string(f.As), stored(since), stored(plan)).
		Scan(&incident, &taken)
	return taken, l.fault("fold findings into an incident", err)
}

//go:embed sql/alarms.sql
var alarmsText string

// Those whose notices are to be planned: what changed, and whose time has come.
var alarmsSQL = alarmsOf(`
	(SELECT f.finding_id FROM reconciler.findings f
	WHERE f.tenant = $1 AND f.planned_version <> f.version
	ORDER BY f.finding_id LIMIT $3)
	UNION
	(SELECT f.finding_id FROM reconciler.findings f
	WHERE f.tenant = $1 AND f.plan_at <= $2
	ORDER BY f.plan_at LIMIT $3)`)

var alarmsByIDSQL = alarmsOf(`SELECT unnest($2::text[]) AS finding_id`)

func alarmsOf(due string) string {
	return strings.NewReplacer("{due}", due, "{finding}", findingColumns).Replace(alarmsText)
}

// Alarms gives findings whose notices are to be planned.
func (l *Ledger) Alarms(ctx context.Context, now time.Time, limit int) ([]recon.Alarm, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	alarms, err := collect(ctx, l.pool, scanAlarm, alarmsSQL, l.tenant, stored(now), listLimit(limit))
	return alarms, l.fault("read findings to tell", err)
}

func scanAlarm(row pgx.CollectableRow) (recon.Alarm, error) {
	var a recon.Alarm
	var told, beside []byte
	var err error
	a.Finding, err = scanFinding(row, number(&a.Opening), instant(&a.PausedUntil), text(&a.Incident), text(&a.Action), instant(&a.Since),
		instant(&a.KeyExpiresAt), &a.Planned, instant(&a.PlanAt), &told, &beside)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(told, &a.Told); err != nil {
		return a, fmt.Errorf("notices of finding %s: %w", a.Finding.ID, err)
	}
	if err := json.Unmarshal(beside, &a.Beside); err != nil {
		return a, fmt.Errorf("findings beside finding %s: %w", a.Finding.ID, err)
	}
	return a, nil
}

// tellingRow is a plan as it is written.
type tellingRow struct {
	Finding string     `json:"finding_id"`
	Level   int        `json:"level"`
	Next    *time.Time `json:"next"`
	Resume  bool       `json:"resume"`
	Wake    bool       `json:"wake"`
	Version int64      `json:"version"`
	Planned int64      `json:"planned"`
	PlanAt  *time.Time `json:"plan_at"`
}

// noticeRow is a notice as it is written.
type noticeRow struct {
	ID          string    `json:"notice_id"`
	Finding     string    `json:"finding_id,omitempty"`
	Act         string    `json:"act"`
	Step        string    `json:"step"`
	Destination string    `json:"destination"`
	Mention     []string  `json:"mention"`
	Reason      string    `json:"reason"`
	DueAt       time.Time `json:"due_at"`
}

func noticeRows(notices []recon.Notice) ([]noticeRow, error) {
	rows := make([]noticeRow, 0, len(notices))
	for _, n := range notices {
		// Ids grow with time, so that notices planned together keep their order.
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		rows = append(rows, noticeRow{
			ID: id.String(), Finding: n.Finding, Act: string(n.Act), Step: n.Step, Destination: n.Destination,
			Mention: emptyList(n.Mention), Reason: n.Reason, DueAt: stored(n.DueAt),
		})
	}
	return rows, nil
}

//go:embed sql/save_tellings.sql
var saveTellingsSQL string

// SaveTellings stores the plans of findings with their notices, in one statement. A
// plan whose finding changed meanwhile is dropped; the finding is planned anew.
func (l *Ledger) SaveTellings(ctx context.Context, tellings []recon.Telling, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows := make([]tellingRow, 0, len(tellings))
	var notices []recon.Notice
	for _, t := range tellings {
		rows = append(rows, tellingRow{
			Finding: t.Finding, Level: t.Level, Next: orNull(t.Next), Resume: t.Resume, Wake: t.Wake,
			Version: t.Version, Planned: t.Planned, PlanAt: orNull(t.PlanAt),
		})
		notices = append(notices, t.Notices...)
	}
	noticesRows, err := noticeRows(notices)
	if err != nil {
		return err
	}
	plansJSON, err := encode(rows)
	if err != nil {
		return err
	}
	noticesJSON, err := encode(noticesRows)
	if err != nil {
		return err
	}
	err = l.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, saveTellingsSQL, l.tenant, stored(now), plansJSON, noticesJSON, string(recon.ActEdit))
		return err
	})
	return l.fault("store who is told", err)
}

//go:embed sql/incidents.sql
var incidentsSQL string

// Incidents gives the incidents that are to be planned now.
func (l *Ledger) Incidents(ctx context.Context, now time.Time, limit int) ([]recon.Incident, error) {
	return l.incidents(ctx, now, limit, nil)
}

// Incident gives one incident (*NotFoundError).
func (l *Ledger) Incident(ctx context.Context, id string, now time.Time) (recon.Incident, error) {
	list, err := l.incidents(ctx, now, 1, &id)
	if err == nil && len(list) == 0 {
		err = &NotFoundError{What: "incident", ID: id}
	}
	if err != nil {
		return recon.Incident{}, err
	}
	list[0].Exponents, err = l.exponents(ctx, list[0].Source)
	return list[0], err
}

const exponentsSQL = `
SELECT p.body -> 'exponents' FROM reconciler.policies p
WHERE p.tenant = $1 AND p.active AND ($2::text = '' OR p.body ->> 'source' = $2) AND jsonb_typeof(p.body -> 'exponents') = 'object'
ORDER BY p.action`

// exponents gives the decimals of currencies that a source has of its own, by the
// policies in force; those of all sources for "".
func (l *Ledger) exponents(ctx context.Context, source recon.SourceName) (map[string]int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	own := map[string]int{}
	rows, err := l.pool.Query(ctx, exponentsSQL, l.tenant, string(source))
	if err != nil {
		return nil, l.fault("read decimals of currencies", err)
	}
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&body}, func() error { return json.Unmarshal(body, &own) })
	return own, l.fault("read decimals of currencies", err)
}

func (l *Ledger) incidents(ctx context.Context, now time.Time, limit int, id *string) ([]recon.Incident, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	list, err := collect(ctx, l.pool, scanIncident, incidentsSQL, l.tenant, stored(now), listLimit(limit), id, topMembers, blindsOfDown)
	return list, l.fault("read incidents", err)
}

func scanIncident(row pgx.CollectableRow) (recon.Incident, error) {
	var i recon.Incident
	var money, top, told []byte
	err := row.Scan(text(&i.ID), text(&i.Source), text(&i.Kind), instant(&i.OpenedAt), instant(&i.JoinedAt), instant(&i.FullAt),
		instant(&i.EndedAt), instant(&i.UpSince), text(&i.Shown), instant(&i.PlanAt), instant(&i.DownSince), number(&i.Total), number(&i.Open),
		number(&i.Succeeded), instant(&i.Oldest), instant(&i.KeyExpires), &i.Actions, &money, &top, &told, text(&i.Fault))
	if err != nil {
		return i, err
	}
	for _, part := range []struct {
		from []byte
		to   any
	}{{money, &i.Money}, {top, &i.Top}, {told, &i.Told}} {
		if err := json.Unmarshal(part.from, part.to); err != nil {
			return i, fmt.Errorf("incident %s: %w", i.ID, err)
		}
	}
	return i, nil
}

//go:embed sql/save_incident.sql
var saveIncidentSQL string

// SaveIncident stores the plan of one incident with its notices. Where it ends, the
// findings that it held back and that are still open are told for themselves. A plan
// that another process made meanwhile stands.
func (l *Ledger) SaveIncident(ctx context.Context, t recon.Telling, up, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := noticeRows(t.Notices)
	if err != nil {
		return err
	}
	notices, err := encode(rows)
	if err != nil {
		return err
	}
	err = l.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, saveIncidentSQL, l.tenant, stored(now), t.Incident, orNull(t.PlanAt), t.Level, orNull(t.Next),
			t.Full, t.Over, orNull(up), t.Shown, notices, string(recon.ActEdit), t.Total, t.Open)
		return err
	})
	return l.fault("store the plan of an incident", err)
}

const planSubjectSQL = `
INSERT INTO reconciler.notices (tenant, notice_id, subject, step, destination, reason, planned_at, due_at)
SELECT $1, n.notice_id, $3, $3, n.destination, $6, $2, $2
FROM unnest($4::text[], $5::text[]) AS n (notice_id, destination)
ON CONFLICT (tenant, subject, opening, step, destination) DO NOTHING`

const (
	// digestSubject is before the day of a digest in the subject of its notices.
	digestSubject = "digest/"
	// reportSubject is that before the day of a report.
	reportSubject = "report/"
)

// PlanDigest plans the digest of a day for its destinations, once.
func (l *Ledger) PlanDigest(ctx context.Context, day string, destinations []string, reason string, now time.Time) error {
	return l.fault("plan the digest", l.planSubject(ctx, digestSubject+day, destinations, reason, now))
}

// planSubject plans a message of its own about a subject, once for each destination.
func (l *Ledger) planSubject(ctx context.Context, subject string, destinations []string, reason string, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ids := make([]string, len(destinations))
	for i := range ids {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		ids[i] = id.String()
	}
	_, err := l.pool.Exec(ctx, planSubjectSQL, l.tenant, stored(now), subject, ids, destinations, reason)
	return err
}
