package pgtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/jackc/pgx/v5"
)

// template is a database that tests get copies of.
type template struct {
	// name holds a hash of everything that its content depends on, so that a changed
	// schema is another template.
	name string
	// fill puts the content into an empty database.
	fill func(ctx context.Context, url string) error
}

// empty has no content.
var empty = template{
	name: "tpl_empty",
	fill: func(context.Context, string) error { return nil },
}

// templates remembers which templates are known to exist.
type templates struct {
	// mu is held while a template is made, so that of a process's many tests one makes it.
	mu    sync.Mutex
	known map[string]error
}

// ensure makes a template unless some process has made it. A template that cannot be
// made is not tried again by this process: every test would fail after the same wait.
func (s *server) ensure(ctx context.Context, tpl template) error {
	s.templates.mu.Lock()
	defer s.templates.mu.Unlock()
	err, seen := s.templates.known[tpl.name]
	if !seen {
		err = s.make(ctx, tpl)
		if s.templates.known == nil {
			s.templates.known = map[string]error{}
		}
		s.templates.known[tpl.name] = err
	}
	return err
}

// make makes a template under a lock among processes. It becomes a template, in the eyes
// of PostgreSQL too, only when it is complete.
func (s *server) make(ctx context.Context, tpl template) error {
	unlock, err := lock(filepath.Join(s.dir, "template.lock"))
	if err != nil {
		return err
	}
	defer unlock()

	var complete bool
	err = s.admin.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)", tpl.name).Scan(&complete)
	if err != nil {
		return fmt.Errorf("look for the template %s: %w", tpl.name, err)
	}
	if complete {
		return nil
	}
	name := pgx.Identifier{tpl.name}.Sanitize()
	if _, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("remove the unfinished template %s: %w", tpl.name, err)
	}
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+name+" STRATEGY FILE_COPY"); err != nil {
		return fmt.Errorf("create the template %s: %w", tpl.name, err)
	}
	if err := tpl.fill(ctx, s.cluster.URL(tpl.name)); err != nil {
		return fmt.Errorf("fill the template %s: %w", tpl.name, err)
	}
	if err := s.warm(ctx, tpl.name); err != nil {
		return err
	}
	// No connection may disturb a copy.
	if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+name+" WITH IS_TEMPLATE true ALLOW_CONNECTIONS false"); err != nil {
		return fmt.Errorf("finish the template %s: %w", tpl.name, err)
	}
	return s.awaitUnused(ctx, tpl.name)
}

// warm connects once, so that PostgreSQL writes its cache of the catalogs into the
// template's folder and every copy connects faster (14 ms instead of 18).
func (s *server) warm(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.cluster.URL(name))
	if err != nil {
		return fmt.Errorf("connect to the template %s: %w", name, err)
	}
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return errors.Join(err, conn.Close(ctx))
}

// awaitUnused disconnects everybody from a database and waits until they are gone.
// PostgreSQL's own wait, in CREATE and DROP DATABASE, looks only every 100 ms.
func (s *server) awaitUnused(ctx context.Context, name string) error {
	return await(ctx, goneLimit, func() error {
		var users int
		err := s.admin.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1", name).Scan(&users)
		if err != nil {
			return fmt.Errorf("disconnect the users of %s: %w", name, err)
		}
		if users > 0 {
			return fmt.Errorf("%d connections to %s are still open", users, name)
		}
		return nil
	})
}
