package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Login is what the database role that we log in as may do, held against what the daemon
// needs.
type Login struct {
	Role       string
	DaemonRole bool // the server has the group role reconciler_daemon, which the rest is held against
	Superuser  bool
	Owner      bool     // may act as reconciler_owner
	Lacks      []string // "operations insert", "clock() execute"
	Beyond     []string // what the daemon's role has not
}

const loginSQL = `
SELECT current_user, r.rolsuper, EXISTS (SELECT 1 FROM pg_roles d WHERE d.rolname = 'reconciler_daemon'),
	EXISTS (SELECT 1 FROM pg_roles o WHERE o.rolname = 'reconciler_owner' AND pg_has_role(r.oid, o.oid, 'MEMBER'))
FROM pg_roles r WHERE r.rolname = current_user`

const rightsSQL = `
WITH may AS (
	SELECT c.relname || ' ' || lower(p.name) AS what,
		has_table_privilege('reconciler_daemon', c.oid, p.name) AS needs, has_table_privilege(c.oid, p.name) AS has
	FROM pg_class c, (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS p (name)
	WHERE c.relnamespace = 'reconciler'::regnamespace AND c.relkind IN ('r', 'p')
	UNION ALL
	SELECT p.proname || '() execute', has_function_privilege('reconciler_daemon', p.oid, 'EXECUTE'), has_function_privilege(p.oid, 'EXECUTE')
	FROM pg_proc p WHERE p.pronamespace = 'reconciler'::regnamespace
)
SELECT coalesce(array_agg(m.what ORDER BY m.what) FILTER (WHERE m.needs AND NOT m.has), '{}'),
	coalesce(array_agg(m.what ORDER BY m.what) FILTER (WHERE m.has AND NOT m.needs), '{}')
FROM may m`

// Login asks the server what our role may do.
func (l *Ledger) Login(ctx context.Context) (in Login, err error) {
	const op = "ask what the database role may do"
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := l.pool.QueryRow(ctx, loginSQL).Scan(&in.Role, &in.Superuser, &in.DaemonRole, &in.Owner); err != nil {
		return in, l.fault(op, err)
	}
	if in.DaemonRole {
		err = l.pool.QueryRow(ctx, rightsSQL).Scan(&in.Lacks, &in.Beyond)
	}
	return in, l.fault(op, err)
}

// Advise judges the role as the one that serve logs in with.
func (in Login) Advise() Advice {
	own := "; give serve a login of its own: CREATE ROLE … LOGIN IN ROLE reconciler_daemon"
	a := Advice{Level: Warning, About: "login"}
	switch {
	case !in.DaemonRole:
		a.Text = "the server has no role reconciler_daemon, so nothing limits what a login may do: run `reconciler migrate up`, and what it prints for an administrator"
	case in.Superuser:
		a.Text = in.Role + " is a superuser: whoever gets its password has the whole server, and evidence with it" + own
	case in.Owner:
		a.Text = in.Role + " may act as reconciler_owner, which can change evidence and functions; migrate with it alone" + own
	case len(in.Lacks) > 0:
		a.Level = Faulty
		a.Text = in.Role + " lacks what serve needs (" + some(in.Lacks) + "): GRANT reconciler_daemon TO " + pgx.Identifier{in.Role}.Sanitize()
	case len(in.Beyond) > 0:
		a.Text = in.Role + " may more than serve needs (" + some(in.Beyond) + "): REVOKE it"
	default:
		a.Level, a.Text = Good, in.Role+" has what serve needs and no more"
	}
	return a
}

// some names the first few.
func some(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

const newestEffectSQL = `
SELECT e.id, e.created_at FROM reconciler.effects e
WHERE e.tenant = $1 AND e.source = $2 AND e.account = $3 AND e.mode = $4 AND e.kind = $5 AND e.created_at >= $6 AND e.created_at < $7
ORDER BY e.created_at DESC, e.id LIMIT 1`

// NewestEffect gives the newest effect of a kind that the ledger knows of, by whatever way,
// among those that were made within the window; an empty id: there is none.
func (l *Ledger) NewestEffect(ctx context.Context, source recon.SourceName, at recon.Account, kind string, w recon.Window) (id string, made time.Time, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, newestEffectSQL, l.tenant, source, at.Account, at.Mode, kind, w.From, w.To)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, instant(&made)}, func() error { return nil })
	}
	return id, made, l.fault("find the newest effect", err)
}
