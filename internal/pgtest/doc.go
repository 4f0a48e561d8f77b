// Package pgtest gives every test a PostgreSQL database of its own, on a real server.
//
// One server serves all test processes of a user, also those of a `go test ./...` that
// run at the same time. The first process starts it; it ends a few seconds after the
// last one has ended, in whatever way that one ended (see shared.go). Nobody has to set
// up anything: PostgreSQL's programs must be installed, and where they are not the test
// fails, never skips, with the one command that installs them.
//
// A database is a copy of a template, made in tens of milliseconds, and is dropped when
// its test ends. Databases share the server's roles, which are global in PostgreSQL: a
// test must not change a role that others use, but make one with a name of its own.
package pgtest
