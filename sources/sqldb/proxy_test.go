package sqldb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
)

// proxy stands between a source and a real PostgreSQL. It counts transactions, and lets
// them suffer what happens on the way to a server or is said by one in distress.
type proxy struct {
	listener         net.Listener
	network, address string

	mu          sync.Mutex // guards what follows
	fault       sourcetest.Fault
	good        int
	all, writes int
}

// startProxy stands before the server of a connection string.
func startProxy(t testing.TB, url string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := p.listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = p.listener.Close()
		conns.Wait()
	})
	return p
}

// through gives the connection string by way of the proxy.
func (p *proxy) through(t *testing.T, url, user string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return "postgres://" + user + "@" + p.listener.Addr().String() + "/" + config.Database + "?sslmode=disable"
}

// serve carries one connection until either side ends it.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	defer server.Close()
	down := &limited{to: client, left: -1}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(down, server)
		_ = client.Close()
	})
	_ = p.up(client, server, down)
	_ = server.Close()
	back.Wait()
}

// up carries what the client says, message by message.
func (p *proxy) up(client io.Reader, server net.Conn, down *limited) error {
	for first := true; ; first = false {
		var head []byte
		if !first { // the first message has no type
			head = make([]byte, 1)
			if _, err := io.ReadFull(client, head); err != nil {
				return err
			}
		}
		size := make([]byte, 4)
		if _, err := io.ReadFull(client, size); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(size)-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return err
		}
		if !first {
			stop, err := p.judge(head[0], body, down)
			if stop {
				continue
			}
			if err != nil {
				return err
			}
		}
		if _, err := server.Write(bytes.Join([][]byte{head, size, body}, nil)); err != nil {
			return err
		}
	}
}

// judge counts a message, and does to it what the fault says: stop keeps it from the server.
func (p *proxy) judge(kind byte, body []byte, down *limited) (stop bool, err error) {
	if kind != 'Q' && kind != 'P' {
		return false, nil
	}
	text := strings.ToLower(strings.TrimLeft(string(body), "\x00 \n\t"))
	p.mu.Lock()
	defer p.mu.Unlock()
	reads := false
	for _, verb := range []string{"begin", "select", "rollback", "commit", ";", "-- ping"} {
		reads = reads || strings.HasPrefix(text, verb)
	}
	begins := strings.HasPrefix(text, "begin")
	if down.garbles() {
		_, err := down.Write([]byte{'!', 0, 0, 0, 4})
		return true, err
	}
	if !reads || begins && !strings.Contains(text, "read only") {
		p.writes++
	}
	if !begins {
		return false, nil
	}
	p.all++
	if p.fault == "" {
		return false, nil
	}
	if p.good > 0 {
		p.good--
		return false, nil
	}
	return p.suffer(down)
}

// suffer plays a fault on the request that begins. Each is told as PostgreSQL, a pooler or
// the net tells what is of its kind.
func (p *proxy) suffer(down *limited) (stop bool, err error) {
	code := map[sourcetest.Fault]string{
		sourcetest.TooMany:   "53300", // too many connections
		sourcetest.Broken:    "57P01", // shut down by an administrator
		sourcetest.Proxy:     "08006", // what a pooler says that lost its server
		sourcetest.NoKey:     "28P01", // invalid password
		sourcetest.Forbidden: "42501", // not permitted
		sourcetest.Empty:     "42P01", // the table is gone
	}[p.fault]
	switch {
	case code != "":
		_, err = down.Write(refusal(code))
		return true, err
	case p.fault == sourcetest.Hangs:
		// The statement's time-out ends it, as the server tells; a server that says nothing at
		// all is a test of its own.
		time.AfterFunc(hangs, func() { _, _ = down.Write(refusal("57014")) }) // nobody may be there any more
		return true, nil
	case p.fault == sourcetest.NotJSON:
		down.garble() // the library does not tell what it read for the one that begins
		return false, nil
	case p.fault == sourcetest.Cut:
		down.end(30)
		return false, nil
	}
	return false, errors.New("closed without a reply")
}

// hangs is how long a hanging statement takes, longer than the context that a test ends.
const hangs = 120 * time.Millisecond

// refusal is PostgreSQL's way to say no.
func refusal(code string) []byte {
	var fields bytes.Buffer
	for _, f := range []string{"SERROR", "VERROR", "C" + code, "Mrefused by the test"} {
		fields.WriteString(f + "\x00")
	}
	fields.WriteByte(0)
	b := binary.BigEndian.AppendUint32([]byte{'E'}, uint32(fields.Len()+4))
	return append(append(b, fields.Bytes()...), 'Z', 0, 0, 0, 5, 'I')
}

// limited passes on what the server says, up to a cut.
type limited struct {
	mu      sync.Mutex // guards what follows, and lets one write at a time
	to      net.Conn
	left    int // bytes until the cut; negative: no cut
	garbled bool
}

func (l *limited) end(after int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = after
}

// garble lets the next request be answered by what is no message of PostgreSQL.
func (l *limited) garble() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.garbled = true
}

func (l *limited) garbles() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.garbled
}

func (l *limited) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left >= 0 && len(b) > l.left {
		_, _ = l.to.Write(b[:l.left])
		_ = l.to.Close()
		return 0, io.ErrClosedPipe
	}
	if l.left >= 0 {
		l.left -= len(b)
	}
	return l.to.Write(b)
}

func (p *proxy) Break(f sourcetest.Fault, good int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.good = f, good
}

func (p *proxy) Mend() { p.Break("", 0) }

func (p *proxy) Requests() (all, writes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, p.writes
}
