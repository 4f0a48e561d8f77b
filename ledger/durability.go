package ledger

import (
	"context"
	"fmt"
	"time"
)

// Durability is what a committed row survives, as the server says of itself.
type Durability struct {
	ServerVersion     string // "15.18"
	Fsync             bool
	FullPageWrites    bool
	SynchronousCommit string // of this database role
	StandbyNames      string // synchronous_standby_names; empty: none waits for a standby
	// Pooled says that something between us and the server hands our statements to
	// connections of its own.
	Pooled bool
	// ClockAhead is how far the server's clock is before this host's, negative where it is
	// behind, and ClockWithin how far that can be wrong. A simulated clock takes no part.
	ClockAhead, ClockWithin time.Duration
}

const durabilitySQL = `
SELECT current_setting('server_version'), current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
	current_setting('synchronous_commit'), btrim(current_setting('synchronous_standby_names')), pg_backend_pid(), clock_timestamp()`

// Durability asks the server what a commit survives and what time it is. host is the
// clock of this host.
func (l *Ledger) Durability(ctx context.Context, host func() time.Time) (d Durability, err error) {
	const op = "ask how durable the database is"
	ctx, cancel := bounded(ctx)
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return d, l.fault(op, err)
	}
	defer conn.Release()
	if err := conn.Ping(ctx); err != nil { // so that the round trip below is one and no more
		return d, l.fault(op, err)
	}
	var process uint32
	var at time.Time
	asked := host()
	err = conn.QueryRow(ctx, durabilitySQL).Scan(&d.ServerVersion, &d.Fsync, &d.FullPageWrites,
		&d.SynchronousCommit, &d.StandbyNames, &process, &at)
	if err != nil {
		return d, l.fault(op, err)
	}
	d.ClockWithin = host().Sub(asked) / 2
	d.ClockAhead = at.Sub(asked.Add(d.ClockWithin))
	// A pooler greets with a process of its own making; the statement ran in a real one.
	d.Pooled = process != conn.Conn().PgConn().PID()
	return d, nil
}

// AdviceLevel says how bad it is.
type AdviceLevel string

const (
	Good    AdviceLevel = "ok"      // is as it should be
	Warning AdviceLevel = "warning" // works, and may lose or confuse something
	Faulty  AdviceLevel = "fault"   // must not be used like this
)

// Advice is one thing that was looked at: how it is and, where it should be otherwise, why
// and what to do.
type Advice struct {
	Level AdviceLevel `json:"level"`
	About string      `json:"about"`
	Text  string      `json:"text"`
}

// maxClockDifference is how far host and database may differ. Leases are judged by the
// database's clock alone; people and windows at providers meet both.
const maxClockDifference = time.Second

// Advise judges what the server says of itself. direct says that an address past a
// pooler is configured.
func (d Durability) Advise(direct bool) []Advice {
	var all []Advice
	add := func(level AdviceLevel, about, format string, args ...any) {
		all = append(all, Advice{level, about, fmt.Sprintf(format, args...)})
	}
	if !d.Fsync {
		add(Faulty, "fsync", "is off: a crash of the machine can lose or corrupt what was committed, intents that were sent among it; "+
			"set fsync = on, and take the data for suspect if it was ever written without")
	}
	if !d.FullPageWrites {
		add(Faulty, "full_page_writes", "is off: a page that was half written in a crash stays broken; set full_page_writes = on")
	}
	switch d.SynchronousCommit {
	case "on", "remote_apply":
	default:
		add(Warning, "synchronous_commit", "is %s for this role: the three functions raise it for intents, but what a sweep concluded "+
			"can be lost and has to be found again; set synchronous_commit = on", d.SynchronousCommit)
	}
	if d.StandbyNames == "" {
		add(Warning, "synchronous_standby_names", "is empty: no commit waits for a standby. If the machine is lost and an asynchronous standby "+
			"promoted, it may lack an intent that was acknowledged and sent, and a repeat under another key makes a second effect; "+
			"set synchronous_standby_names, and open operations with case and step or a key of your own")
	}
	if off := d.ClockAhead.Abs(); off-d.ClockWithin > maxClockDifference {
		way := "ahead of"
		if d.ClockAhead < 0 {
			way = "behind"
		}
		add(Warning, "clock", "the database's clock is %s %s this host's: leases and deadlines go by the database's; synchronise both with NTP",
			off.Round(100*time.Millisecond), way)
	}
	if d.Pooled && !direct {
		add(Faulty, "direct_url", "is not configured and the database is reached through a pooler: a migration needs one connection of its own; "+
			"write database.direct_url, an address past the pooler")
	}
	return all
}
