package stripetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the provider that are kept, and of the fake itself.
const (
	defaultPage      = 10
	maxPage          = 100
	keyRetention     = 24 * time.Hour
	eventHistory     = 30 * 24 * time.Hour
	defaultVersion   = "2025-08-27.basil"
	maxBody          = 1 << 20
	maxHeaderWaiting = 10 * time.Second
)

// Options configure a server. Now and Accounts are required.
type Options struct {
	// Now is the simulated clock. It is read once or twice per request and may be
	// called by several goroutines; it must not call the server.
	Now func() time.Time
	// Seed makes ids and chances; the same seed and requests give the same ids.
	Seed uint64
	// Accounts are the pairs of account and mode that exist, each a store of its own.
	Accounts []Account
	// Lag is how long a new object stays invisible, by way of asking.
	Lag Lag
	// PageCap is the largest page that is served, whatever limit asks for, so that a
	// small data set has many pages. 0 means 100.
	PageCap int
	// KeyRetention is the age at which an idempotency key is forgotten. 0 means 24 h.
	KeyRetention time.Duration
	// Life says what becomes of each refund that is made through the API. It gets the
	// refund as asked for (id, charge, amount, metadata, key) and must not call the
	// server. nil, or an empty life, means that it succeeds at once.
	Life func(Refund) Life
	// ReleaseRefunds lets a partial capture make a refund of what it releases.
	ReleaseRefunds bool
	// APIVersion is what events bear; the account's default version at Stripe. Empty
	// means the version that stripe-go v82 pins.
	APIVersion string
}

// Account is one account in one mode, with the keys that open it. A connected
// account has no keys but a Platform, whose keys open it by the Stripe-Account header.
type Account struct {
	ID   string // acct_…
	Mode string // live or test
	// Key opens everything, unless it begins with rk_: then it only reads.
	Key string
	// ReadKey only reads: every write with it is answered 403, and so is the question which
	// account it opens, for which a restricted key needs a permission of its own.
	ReadKey string
	// EventsKey reads the list of events and nothing else, IdleKey nothing at all: all
	// else is answered 403.
	EventsKey, IdleKey string
	// Platform is the account that this one is connected to, in the same mode.
	Platform string
}

// Lag is how long after its creation an object becomes visible, by way of asking.
// Search lag applies to /search, Events to both the list of events and one event.
type Lag struct {
	List, Retrieve, Search, Events time.Duration
}

// Server is a running fake. All methods may be called concurrently.
type Server struct {
	opt      Options
	http     *http.Server
	url      string
	fixtures fixtures
	closing  chan struct{} // closed by Close: ends waiting requests
	ended    context.Context
	end      context.CancelFunc // by Close: ends posts
	poster   *http.Client
	served   chan struct{}  // closed when the accepting goroutine has ended
	running  sync.WaitGroup // requests; grows under mu and only while not closed

	// mu guards everything below: a request runs under it as if alone, apart from
	// the time that a fault makes it wait.
	mu      sync.Mutex
	closed  bool
	places  map[placeID]*place
	inOrder []*place
	keyring map[string]credential
	lag     Lag
	ids     idMaker
	seq     int
	agenda  agenda
	faults  []*script
	calls   []*Call
	counts  map[string]int
	writes  int
	pages   map[string]int // number of the page after a cursor, by list, filters and cursor

	hooks      []*Hook
	mail       mailbag
	early      map[string]bool // ids of requests before whose answer something is posted
	deliveries []Delivery
}

// Start serves on a free port of 127.0.0.1 until Close.
func Start(opt Options) (*Server, error) {
	if opt.Now == nil {
		return nil, errors.New("stripetest: Options.Now is missing: give the simulated clock")
	}
	opt = withDefaults(opt)
	s := &Server{
		opt:     opt,
		lag:     opt.Lag,
		served:  make(chan struct{}),
		closing: make(chan struct{}),
		ids:     newIDMaker(opt.Seed),
		counts:  map[string]int{},
		pages:   map[string]int{},
		early:   map[string]bool{},
		poster:  newPoster(),
	}
	// The server ends with Close, whoever started it.
	s.ended, s.end = context.WithCancel(context.Background())
	var err error
	if s.fixtures, err = readFixtures(); err != nil {
		return nil, err
	}
	if err := s.openAccounts(opt.Accounts); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stripetest: listen on loopback: %w", err)
	}
	s.url = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: s.mux(), ReadHeaderTimeout: maxHeaderWaiting}
	go func() {
		defer close(s.served)
		// Serve always ends with an error; after Close it is the expected one, and
		// before it there is nobody to tell but the clients, whose requests fail.
		_ = s.http.Serve(listener)
	}()
	return s, nil
}

func withDefaults(opt Options) Options {
	if opt.PageCap <= 0 || opt.PageCap > maxPage {
		opt.PageCap = maxPage
	}
	if opt.KeyRetention <= 0 {
		opt.KeyRetention = keyRetention
	}
	if opt.APIVersion == "" {
		opt.APIVersion = defaultVersion
	}
	return opt
}

// URL is the base address, without a slash at the end: what BackendConfig.URL wants.
func (s *Server) URL() string { return s.url }

// SetLag changes the visibility lag for all objects, those that exist included.
func (s *Server) SetLag(lag Lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag
}

// Close ends waiting requests, closes all connections and returns when nothing of the
// server runs any more. What it was asked can still be read. It may be called more
// than once.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
		s.end()
	}
	s.mu.Unlock()
	// An error would be the listener's, which is gone either way.
	_ = s.http.Close()
	<-s.served
	s.running.Wait()
	s.poster.CloseIdleConnections()
}

// begin lets a request in, unless the server is closing; whoever is let in ends with
// running.Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}
