package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// superuser is the role that initdb makes and that everything connects as.
	superuser = "postgres"
	// port only names the socket file; nothing listens on the network.
	port = "5432"
	// maxConnections serves many test processes at once; an idle one costs little.
	maxConnections = "400"
)

// Options say which server to run.
type Options struct {
	// Dir is the folder that holds data, log and lock. It is made when it is missing.
	// Only a throwaway server may leave it empty: it then gets a temporary folder,
	// which Stop removes.
	Dir string
	// Throwaway allows data to be lost: fsync is off, which makes creating databases
	// several times faster. For tests and demonstrations only.
	Throwaway bool
	// User runs the programs when we are root and the data does not exist yet. Empty
	// means postgres, or nobody where there is no such user.
	User string
}

// Cluster is a data folder together with the programs and the user that run it. It says
// nothing about whether the server is running; that is [Server].
type Cluster struct {
	dir       string
	socketDir string
	bin       string
	account   account
	throwaway bool
}

// Prepare makes what is missing of a folder and runs initdb once. Only one process at a
// time may prepare a folder; [Start] sees to that with the folder's lock.
func Prepare(ctx context.Context, opt Options) (*Cluster, error) {
	dir, err := makeDir(opt.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, throwaway: opt.Throwaway}

	major, err := dataMajor(c.data())
	if err != nil {
		return nil, err
	}
	found, err := findPrograms(ctx, major)
	if err != nil {
		return nil, fmt.Errorf("local PostgreSQL in %s: %w", dir, err)
	}
	c.bin = found.folder
	if c.account, err = chooseAccount(c.data(), opt.User); err != nil {
		return nil, err
	}
	if err := c.account.checkEnter(c.bin, dir); err != nil {
		return nil, err
	}
	if major == 0 {
		if err := c.initdb(ctx); err != nil {
			return nil, err
		}
	}
	if c.socketDir, err = c.makeSocketDir(); err != nil {
		return nil, err
	}
	return c, nil
}

// URL is how to connect to a database of the cluster, for pgx and for psql alike.
func (c *Cluster) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database}
	u.RawQuery = url.Values{"host": {c.socketDir}, "port": {port}}.Encode()
	return u.String()
}

// LogPath is the file that the server writes its log to.
func (c *Cluster) LogPath() string { return filepath.Join(c.dir, "postgresql.log") }

// ServerArgs are the arguments of the postgres program. They stand on the command line
// rather than in postgresql.conf, so that data made by an older version of this package
// is served by the rules of this one.
func (c *Cluster) ServerArgs() []string {
	args := []string{"-D", c.data(), "-p", port}
	set := func(name, value string) { args = append(args, "-c", name+"="+value) }
	set("listen_addresses", "")
	set("unix_socket_directories", c.socketDir)
	set("unix_socket_permissions", "0700")
	set("max_connections", maxConnections)
	set("timezone", "UTC")
	set("log_timezone", "UTC")
	// A file and not a pipe: a full or broken pipe would stop the server.
	set("logging_collector", "off")
	if !c.throwaway {
		set("fsync", "on")
		set("full_page_writes", "on")
		set("synchronous_commit", "on")
		return args
	}
	// Data that may be lost need not reach the disk; that is most of the time that a
	// test's database costs.
	set("fsync", "off")
	set("full_page_writes", "off")
	set("synchronous_commit", "off")
	// Its folder may be in memory.
	set("max_wal_size", "256MB")
	return args
}

// keepMemory lets a server whose data may be lost keep the memory that a statement needed for
// the next one. To give it back to the system and to ask for it anew is, for statements as
// small as those of tests, a seventh of all that they cost. Other libraries than glibc know
// nothing of it.
const keepMemory = "GLIBC_TUNABLES=glibc.malloc.top_pad=4194304:glibc.malloc.trim_threshold=67108864:glibc.malloc.mmap_threshold=33554432"

// Command is a program of the cluster's installation, to be run as the cluster's user in
// the cluster's folder, without the PG* variables of whoever started us. It dies with
// the thread that starts it (Linux).
func (c *Cluster) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = programEnv()
	if c.throwaway {
		cmd.Env = append(cmd.Env, keepMemory)
	}
	cmd.SysProcAttr = c.account.attributes(syscall.SIGKILL)
	return cmd
}

// Answers says whether a server of this cluster takes connections now.
func (c *Cluster) Answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL(superuser))
	if err != nil {
		return fmt.Errorf("connect to the local PostgreSQL in %s: %w", c.dir, err)
	}
	return conn.Close(ctx)
}

// CreateDatabase makes an empty database unless there is one of that name.
func (c *Cluster) CreateDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, c.URL(superuser))
	if err != nil {
		return fmt.Errorf("connect to the local PostgreSQL in %s: %w", c.dir, err)
	}
	defer conn.Close(ctx)

	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil && !isDuplicate(err) {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// CopyDatabase makes a database that holds what another one does, to which nobody may be
// connected meanwhile.
func (c *Cluster) CopyDatabase(ctx context.Context, from, name string) error {
	// FILE_COPY: a copy of 300 files costs less than writing them to the log.
	return c.maintain(ctx, superuser, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY FILE_COPY",
		pgx.Identifier{name}.Sanitize(), pgx.Identifier{from}.Sanitize()))
}

// DropDatabase removes a database, whoever is still connected.
func (c *Cluster) DropDatabase(ctx context.Context, name string) error {
	return c.maintain(ctx, superuser, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// emptySQL runs as whom the triggers of the tables do not bind.
const emptySQL = `
DO $$
DECLARE
	tables text;
BEGIN
	SET LOCAL session_replication_role = replica;
	SELECT string_agg(format('%%I.%%I', schemaname, tablename), ', ') INTO tables
	FROM pg_tables WHERE schemaname = %s AND tablename <> %s;
	EXECUTE 'TRUNCATE ' || tables || ' RESTART IDENTITY';
END $$`

// EmptySchema empties all tables of a schema but one. What the planner knows of them stays.
func (c *Cluster) EmptySchema(ctx context.Context, database, schema, but string) error {
	literal := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	return c.maintain(ctx, database, fmt.Sprintf(emptySQL, literal(schema), literal(but)))
}

// maintain runs one statement in a database, outside of any transaction.
func (c *Cluster) maintain(ctx context.Context, database, statement string) error {
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return fmt.Errorf("connect to the local PostgreSQL in %s: %w", c.dir, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// initdb makes the data in a folder beside its place and moves it there when it is
// complete, so that a start that was killed half way leaves nothing that looks like data.
func (c *Cluster) initdb(ctx context.Context) error {
	fresh := c.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished initdb: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	if err := c.account.own(fresh); err != nil {
		return err
	}
	args := []string{
		"-D", fresh, "-U", superuser, "--encoding=UTF8", "--locale=C", "--data-checksums",
		// Whoever gets into the 0700 folder of the socket is in; nobody else reaches it.
		"--auth-local=trust", "--auth-host=reject", "--no-instructions",
	}
	if c.throwaway {
		args = append(args, "--no-sync")
	}
	out, err := runBounded(ctx, c.Command("initdb", args...))
	if err != nil {
		return fmt.Errorf("initdb in %s: %w: %s", fresh, err, lastLines(out, 5))
	}
	if err := os.Rename(fresh, c.data()); err != nil {
		return fmt.Errorf("move the fresh data to its place: %w", err)
	}
	return nil
}

// dataMajor is the major version that made the data, or 0 if there is no data.
func dataMajor(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if entries, _ := os.ReadDir(data); len(entries) > 0 {
			return 0, fmt.Errorf("%s is not empty and is no PostgreSQL data folder (no PG_VERSION); choose another folder", data)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s/PG_VERSION does not hold a version: %w", data, err)
	}
	return major, nil
}

// programEnv is the environment of PostgreSQL's programs: messages in English, since we
// read some of them, and none of the PG* variables of whoever started us.
func programEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
