package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is what processes tell each other of new events through. A notification is
// only a hint: whoever misses one finds the events by looking.
const channel = "reconciler_inbox"

// connectWithin bounds the making of a connection to listen on.
const connectWithin = 10 * time.Second

// Notify tells all processes that listen that there are new events. It runs by itself,
// after the commit that it is about.
func (s *Store) Notify(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.pool.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, s.tenant)
	return s.fault("tell of new events", err)
}

// Listen calls heard at every notification of this tenant until ctx ends or the
// connection breaks. It needs a connection of its own, past any pooler: url.
func (s *Store) Listen(ctx context.Context, url string, heard func()) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("the address to listen on for new events cannot be read: write it as postgres://role@host:port/database")
	}
	config.ConnectTimeout = connectWithin
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return s.fault("listen for new events", err)
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(end) // it is given up in any case
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return s.fault("listen for new events", err)
	}
	heard() // what came before we listened
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return s.fault("listen for new events", fmt.Errorf("wait for a notification: %w", err))
		}
		if n.Payload == s.tenant {
			heard()
		}
	}
}
