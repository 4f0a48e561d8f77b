package ledger_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const secret = "s3cr3t-TESTONLY"

func TestB100_OpeningFailsWithANextStepAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	good := pgtest.URL(t)
	empty := pgtest.EmptyURL(t)
	newer := newWorld(t)
	newer.exec(`INSERT INTO reconciler.schema_version (version_id, is_applied, tstamp) VALUES (999, true, now())`)
	tests := []struct {
		name string
		url  string
		says []string
	}{
		{"no URL", "", []string{"--database-url", "RECONCILER_DATABASE_URL"}},
		{"a URL that is none", "postgres://u:" + secret + "@host:notaport/db?x=%zz", []string{"cannot be read", "postgres://role@host:port/database"}},
		{"nobody listens", "postgres://u:" + secret + "@127.0.0.1:1/db", []string{"127.0.0.1:1/db", "cannot be reached", "check that it runs"}},
		{"no such database", with(t, good, func(u *url.URL) { u.Path = "/nowhere" }), []string{"nowhere", "check role, password and database"}},
		{"an empty database", empty, []string{"reconciler migrate up"}},
		{"a newer schema", newer.url, []string{"999", "newer program"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := tt.url
			if u != "" && !strings.Contains(u, secret) {
				u = with(t, u, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), secret) })
			}
			led, err := ledger.Open(t.Context(), ledger.Options{URL: u})
			if err == nil {
				led.Close()
				t.Fatal("opened")
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error does not say %q: %v", s, err)
				}
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
	var n *migrations.Newer
	if _, err := ledger.Open(t.Context(), ledger.Options{URL: newer.url}); !errors.As(err, &n) {
		t.Errorf("a newer schema: %v, want migrations.Newer to be recognised", err)
	}
}

func with(t *testing.T, raw string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

func TestAServerThatRefusesTheLoginIsNamed(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // a server that says what PostgreSQL says of a wrong password
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 1024)
			if _, err := c.Read(buf); err != nil {
				c.Close()
				continue
			}
			if buf[4] == 0x04 && buf[5] == 0xd2 { // asks for TLS
				c.Write([]byte("N"))
				c.Read(buf)
			}
			body := "SFATAL\x00VFATAL\x00C28P01\x00Mpassword authentication failed for user \"u\"\x00\x00"
			c.Write(append([]byte{'E', 0, 0, 0, byte(len(body) + 4)}, body...))
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	_, err = ledger.Open(t.Context(), ledger.Options{URL: "postgres://u:" + secret + "@" + ln.Addr().String() + "/db?sslmode=disable"})
	f, ok := errors.AsType[*ledger.Fault](err)
	if !ok || f.Kind != ledger.FaultCredentials || f.Code != "28P01" || strings.Contains(err.Error(), secret) {
		t.Errorf("wrong password: %v", err)
	}
}

func TestTheTenantIsTheRoles(t *testing.T) {
	t.Parallel()
	base := pgtest.URL(t)
	shop := with(t, base, func(u *url.URL) {
		q := u.Query()
		q.Set("reconciler.tenant", "shop-7")
		u.RawQuery = q.Encode()
	})
	for _, tt := range []struct {
		name, url, tenant, want string
		fails                   bool
	}{
		{"unset is default", base, "", "default", false},
		{"the expected one", base, "default", "default", false},
		{"set by the role or the connection", shop, "", "shop-7", false},
		{"another than expected is refused", shop, "default", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			led, err := ledger.Open(t.Context(), ledger.Options{URL: tt.url, Tenant: tt.tenant})
			if tt.fails {
				if err == nil || !strings.Contains(err.Error(), "shop-7") {
					t.Errorf("got %v, want an error that names both tenants", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer led.Close()
			if led.Tenant() != tt.want {
				t.Errorf("tenant %q, want %q", led.Tenant(), tt.want)
			}
		})
	}
}

func TestFaultsSayWhatKindTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	t.Run("a statement that takes too long", func(t *testing.T) {
		led, err := ledger.Open(t.Context(), ledger.Options{URL: with(t, w.url, func(u *url.URL) {
			q := u.Query()
			q.Set("statement_timeout", "2000")
			u.RawQuery = q.Encode()
		})})
		if err != nil {
			t.Fatal(err)
		}
		defer led.Close()
		tx, err := w.db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := tx.Exec(t.Context(), `SELECT FROM reconciler.operations FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		o := w.story("op-1").Operation
		_, err = led.Record(t.Context(), deciding(ledger.Hold{}, t0, []recon.Operation{o}, stay(o, t0.Add(time.Hour))))
		if f, ok := errors.AsType[*ledger.Fault](err); !ok || f.Kind != ledger.FaultTimeout || !strings.Contains(err.Error(), "pg_stat_activity") {
			t.Errorf("got %v, want a timeout that says where to look", err)
		}
	})
	t.Run("a role that may do nothing", func(t *testing.T) {
		w.exec(`CREATE ROLE ledger_powerless_test`)
		t.Cleanup(func() {
			if _, err := w.db.Exec(context.WithoutCancel(t.Context()), `DROP ROLE ledger_powerless_test`); err != nil {
				t.Error(err)
			}
		})
		// A connection that becomes the role before its first statement of ours.
		led, err := ledger.Open(t.Context(), ledger.Options{URL: with(t, w.url, func(u *url.URL) {
			q := u.Query()
			q.Set("role", "ledger_powerless_test")
			u.RawQuery = q.Encode()
		})})
		if err == nil {
			led.Close()
		}
		if f, ok := errors.AsType[*ledger.Fault](err); !ok || f.Kind != ledger.FaultPrivilege {
			t.Errorf("got %v, want a fault of privilege", err)
		}
	})
	t.Run("a context that ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.led.Story(ctx, "op-1"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want it to be recognised as cancelled", err)
		}
	})
	t.Run("an operation that is not there", func(t *testing.T) {
		_, err := w.led.Story(t.Context(), "op-none")
		if n, ok := errors.AsType[*ledger.NotFoundError](err); !ok || n.ID != "op-none" {
			t.Errorf("got %v, want a NotFoundError", err)
		}
		_, err = w.led.SetAside(t.Context(), "op-none", t0, "x")
		if _, ok := errors.AsType[*ledger.NotFoundError](err); !ok {
			t.Errorf("got %v, want a NotFoundError", err)
		}
	})
}
