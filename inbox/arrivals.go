package inbox

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Arrivals is how the events of a source came lately.
type Arrivals struct {
	Delivered time.Time // when its provider last delivered one; zero: never, as far as is kept
	Missed    int       // since then, how many had to be read from the provider's own list
}

const arrivalsSQL = `
WITH last AS (
	SELECT e.received_at FROM reconciler.events e
	WHERE e.tenant = $1 AND e.source = $2 AND e.deliveries > 0
	ORDER BY e.received_at DESC LIMIT 1
)
SELECT (SELECT received_at FROM last), (
	SELECT count(*) FROM (
		SELECT 1 FROM reconciler.events e
		WHERE e.tenant = $1 AND e.source = $2 AND e.deliveries = 0
			AND e.received_at > coalesce((SELECT received_at FROM last), '-infinity')
		LIMIT 1000
	) missed
)`

// Arrivals tells how the events of a source came, counting at most 1,000 that were missed.
func (s *Store) Arrivals(ctx context.Context, source recon.SourceName) (Arrivals, error) {
	var a Arrivals
	var last *time.Time
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := s.pool.QueryRow(ctx, arrivalsSQL, s.tenant, source).Scan(&last, &a.Missed); err != nil {
		return a, s.fault("ask when events came", err)
	}
	if last != nil {
		a.Delivered = last.UTC()
	}
	return a, nil
}
