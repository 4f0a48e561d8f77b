package packagetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

// The database of the compose file, on a real server: the script that PostgreSQL's image
// runs makes the daemon's login, the program makes the schema, and the login can do the
// daemon's part and no more.
func TestTheDaemonsLoginCanDoItsPart(t *testing.T) {
	server, err := localpg.Start(t.Context(), localpg.Options{Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	bin, err := localpg.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.CreateDatabase(t.Context(), "reconciler"); err != nil {
		t.Fatal(err)
	}
	admin := server.URL("reconciler")
	cfg, err := pgx.ParseConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	password := filepath.Join(t.TempDir(), "password")
	write(t, password, "it's \\ secret\n")
	script := exec.CommandContext(t.Context(), "sh", filepath.Join(composeDir, "postgres/10-logins.sh"))
	script.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PGHOST="+cfg.Host, "PGPORT=5432",
		"POSTGRES_USER=postgres", "POSTGRES_DB=reconciler", "DAEMON_PASSWORD_FILE="+password)
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if said := run(t, []string{"RECONCILER_DATABASE_URL=" + admin}, "migrate", "up", "--format", "json"); !strings.Contains(string(said), `"for_administrator": []`) {
		t.Errorf("an administrator must still do something:\n%s", said)
	}
	daemon := strings.Replace(admin, "postgres://postgres@", "postgres://reconciler@", 1)
	run(t, []string{"RECONCILER_DATABASE_URL=" + daemon}, "operations", "list")
	conn, err := pgx.Connect(t.Context(), daemon)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range []string{"DELETE FROM reconciler.journal", "CREATE TABLE reconciler.mine (a int)", "CREATE ROLE mine"} {
		if _, err := conn.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("the daemon's login may: %s: %v", statement, err)
		}
	}
}
